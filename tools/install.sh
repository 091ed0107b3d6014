# install.sh ENVIRONMENT WHAT…: installs by uv, which is much quicker, or else by pip.
# Where pip was told of an index in place of the public one, of none, of a proxy or of constraints, pip does it:
# uv wouldn't know. Nothing is compiled to byte code: Python does that for what is imported.
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
