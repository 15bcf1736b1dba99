# A shell function for the set-up scripts. Sourced, not run.

# Installs the Debian packages in the arguments that are missing, and says so first.
# Exit code 3: they are missing and cannot be installed here.
ensure_packages() {
    local missing=() package
    for package in "$@"; do
        if ! dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$'; then
            missing+=("$package")
        fi
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo --non-interactive)
    fi
    echo "installing system packages: ${missing[*]}"
    if ! { "${sudo[@]}" apt-get update --quiet=2 \
        && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" >/dev/null; }; then
        echo "not installed on this machine: ${missing[*]}" >&2
        exit 3
    fi
}
