#!/bin/sh
# Makes .venv: a fitting Python, the packages pinned in requirements.txt, and this project in editable form.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $1" >&2
    exit 1
}

works() {
    "$@" >/dev/null 2>&1
}

# The pinned packages have wheels for these versions; a command that only forwards (pyenv) may exist and not run.
fits() {
    works "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
}

find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if fits "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    fail "no Python from 3.11 to 3.14 on the PATH; install one (for example python3.12) and run the command again."
}

# Into .venv, which is ours to write to even where the system's pip is managed by the distribution.
fetch_uv() {
    if works .venv/bin/python -m pip --version || works .venv/bin/python -m ensurepip; then
        PIP_USER=0 .venv/bin/python -m pip install --quiet --disable-pip-version-check uv
    elif works "$python" -m pip --version; then
        PIP_USER=0 "$python" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check uv
    else
        fail "$python has neither pip nor ensurepip to fetch uv with; install one (Debian, Ubuntu: apt install python3-venv)."
    fi
}

python=$(find_python)
if ! fits .venv/bin/python; then
    echo "setup: creating .venv with $("$python" --version)"
    "$python" -m venv --without-pip --clear .venv
fi

uv=uv
if ! works uv --version; then
    uv=.venv/bin/uv
    if ! works "$uv" --version; then
        echo "setup: fetching uv"
        fetch_uv
    fi
fi

echo "setup: installing the packages of requirements.txt (some 6 GB on Linux; minutes the first time)"
# Where Python may not keep its bytecode, as in many containers, every process would compile torch and Ray anew.
compile=${PYTHONDONTWRITEBYTECODE:+--compile-bytecode}
# shellcheck disable=SC2086 # no option at all where there is none
"$uv" pip install --python .venv/bin/python $compile --requirements requirements.txt
"$uv" pip install --quiet --python .venv/bin/python --no-deps --editable .
touch .venv/.stamp
echo "setup: done, .venv/bin/bench is ready"
