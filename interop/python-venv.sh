# A shell function for the suites that run in a Python virtual environment. Sourced, not run.

. "$(dirname "${BASH_SOURCE[0]}")/system-packages.sh"

# Makes the virtual environment $1 hold exactly the packages pinned in $2. Returns at once when it
# already does; a copy of the requirements inside the environment is the mark of completion.
ensure_venv() {
    local venv="$1" requirements="$2"
    if cmp -s "$requirements" "$venv/installed.txt"; then
        return
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        ensure_packages python3 python3-venv
    fi
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$venv/installed.txt"
}
