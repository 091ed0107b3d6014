# install.sh ENVIRONMENT [WHAT…]: makes the environment unless it exists, and installs with uv, which
# is much faster, or else with pip. If pip is configured with another index, no index, a proxy or
# constraints, pip is used, because uv doesn't read that configuration. Nothing is compiled to byte
# code: Python does that on import.
set -eu
: "${PYTHON:=python3}"
trap 'exit 130' INT
trap 'exit 143' TERM
python=$1/bin/python
# Without pyvenv.cfg it would be the Python that it links to, and everything would be installed there.
if ! [ -x "$python" ] || ! [ -f "$1/pyvenv.cfg" ]; then
  "$PYTHON" -m venv --clear --without-pip "$1"
fi
shift
export PIP_REQUIRE_VIRTUALENV=1
# A new environment has no pip, and to install one first would take longest of all.
if ! "$python" -m pip --version > /dev/null 2>&1 &&
  "$PYTHON" -m pip --python "$python" --version > /dev/null 2>&1; then
  pip() { "$PYTHON" -m pip --python "$python" "$@"; }
else
  "$python" -m pip --version > /dev/null 2>&1 || "$python" -m ensurepip > /dev/null
  pip() { "$python" -m pip "$@"; }
fi
if ! pip config list | grep -E '\.(index-url|no-index|proxy|constraint)=' > /dev/null; then
  pip install --quiet --no-compile --only-binary uv uv &&
    "$python" -m uv pip install --quiet --python "$python" pip "$@" && exit
  echo "uv failed, as above; pip tries" >&2
fi
pip install --quiet --no-compile --upgrade pip
[ $# = 0 ] || "$python" -m pip install --quiet --no-compile "$@"
