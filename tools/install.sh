# install.sh ENVIRONMENT WHAT…: installs with uv, which is much faster, or else with pip.
# If pip is configured with another index, no index, a proxy or constraints, pip is used, because uv
# doesn't read that configuration. Nothing is compiled to byte code: Python does that on import.
set -eu
trap 'exit 130' INT
trap 'exit 143' TERM
python=$1/bin/python
shift
if ! "$python" -m pip config list | grep -E '\.(index-url|no-index|proxy|constraint)=' > /dev/null; then
  "$python" -m pip install --quiet --no-compile --only-binary uv uv &&
    "$python" -m uv pip install --quiet --python "$python" "$@" && exit
  echo "uv failed, as above; pip tries" >&2
fi
"$python" -m pip install --quiet --no-compile --upgrade pip
"$python" -m pip install --quiet --no-compile "$@"
