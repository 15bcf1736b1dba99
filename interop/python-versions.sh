# A shell function for the suites of azure-servicebus. Sourced, not run.

# Runs pytest in the folder $1 once with each version of the SDK; further arguments go to pytest. Each version has
# queues of its own and mostly waits, so they run at the same time.
run_versions() {
    local here="$1" cache="${XDG_CACHE_HOME:-$HOME/.cache}/railbus/interop/python" status=0 version output
    local -A suites
    shift
    export PYTHONDONTWRITEBYTECODE=1
    output="$(mktemp -d)"
    for version in 7.15.0 7.14.3; do
        (cd "$here" && exec timeout 900 "$cache/venv-$version/bin/python" -m pytest "$@") >"$output/$version" 2>&1 &
        suites[$version]=$!
    done
    for version in 7.15.0 7.14.3; do
        wait "${suites[$version]}" || status=1
        echo "azure-servicebus $version (Python)"
        cat "$output/$version"
    done
    rm -rf "$output"
    return "$status"
}
