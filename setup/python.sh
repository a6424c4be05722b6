# Finds Python interpreters this project can run on. Sourced by ./crawl and ./test; POSIX sh.

# Prints "X.Y" if $1 is a working Python 3.11, 3.12 or 3.13, else fails. It is really started, because a
# pyenv shim exists for every version ever installed and fails when called for one that is not active.
python_version() {
    "$1" -c 'import sys
v = sys.version_info[:2]
sys.exit(1) if not (3, 11) <= v <= (3, 13) else print("%d.%d" % v)' 2>/dev/null
}

# All places where an interpreter may be, the preferred ones first. A path may occur twice or not exist.
python_candidates() {
    for name in python3 python3.11 python3.12 python3.13; do
        command -v "$name" || :
        printf '%s\n' "/usr/bin/$name" "/usr/local/bin/$name"
    done
    for root in "${PYENV_ROOT:-}" "$(pyenv root 2>/dev/null)" "${HOME:-}/.pyenv"; do
        [ -d "$root/versions" ] && printf '%s\n' "$root"/versions/3.1[123].*/bin/python3
    done
    :
}

# Prints the interpreter to use, or explains on stderr what is wrong and fails.
find_python() {
    if [ -n "${PAVOUK_PYTHON:-}" ]; then
        python_version "$PAVOUK_PYTHON" >/dev/null && { command -v "$PAVOUK_PYTHON"; return; }
        echo "PAVOUK_PYTHON=$PAVOUK_PYTHON is not a working Python 3.11, 3.12 or 3.13" >&2
        return 1
    fi
    python_candidates | {
        while IFS= read -r candidate; do
            python_version "$candidate" >/dev/null && { printf '%s\n' "$candidate"; exit 0; }
        done
        echo "no Python 3.11, 3.12 or 3.13 found; on Debian and Ubuntu: apt-get install python3 python3-venv," >&2
        echo "or name one: PAVOUK_PYTHON=/path/to/python3" >&2
        exit 1
    }
}

# Prints one interpreter for each of 3.11, 3.12 and 3.13 other than version $1, as far as there is one.
find_other_pythons() {
    seen=" $1 "
    python_candidates | while IFS= read -r candidate; do
        version=$(python_version "$candidate") || continue
        case "$seen" in *" $version "*) continue ;; esac
        seen="$seen$version "
        printf '%s\n' "$candidate"
    done
}
