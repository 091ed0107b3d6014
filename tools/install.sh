# install.sh ENVIRONMENT WHAT…: makes the environment unless it exists, and installs with uv, which
# is much faster, or else with pip. If pip is configured with another index, no index, a proxy or
# constraints, pip is used, because uv doesn't read that configuration. Nothing is compiled to byte
# code: Python does that on import.
set -eu
trap 'exit 130' INT
trap 'exit 143' TERM
python=$1/bin/python
[ -x "$python" ] || "$PYTHON" -m venv --without-pip "$1"
shift
# Where Python has a pip, it installs into the environment: giving that its own first takes longer.
if "$PYTHON" -m pip --python "$python" --version > /dev/null 2>&1; then
  pip() { "$PYTHON" -m pip --python "$python" "$@"; }
else
  "$python" -m ensurepip > /dev/null
  pip() { "$python" -m pip "$@"; }
fi
if ! pip config list | grep -E '\.(index-url|no-index|proxy|constraint)=' > /dev/null; then
  pip install --quiet --no-compile --only-binary uv uv &&
    "$python" -m uv pip install --quiet --python "$python" pip "$@" && exit
  echo "uv failed, as above; pip tries" >&2
fi
pip install --quiet --no-compile --upgrade pip
"$python" -m pip install --quiet --no-compile "$@"
