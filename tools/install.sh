# install.sh ENVIRONMENT WHAT…: installs by uv, which is three times as quick, or else by pip.
# Where pip was told of an index of its own, or of none, pip does it: uv would go to the public one.
set -eu
python=$1/bin/python
shift
if ! $python -m pip config list | grep -qE '\.(index-url|no-index)='; then
  $python -m pip install --quiet --no-compile uv &&
    $python -m uv pip install --quiet --python "$python" "$@" && exit
  echo "uv couldn't; pip tries" >&2
fi
$python -m pip install --quiet --no-compile --upgrade pip
$python -m pip install --quiet --no-compile "$@"
