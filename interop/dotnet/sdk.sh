# Puts a .NET SDK of version 10 on the path: the machine's own or, where there is none, that of the kit which may stand
# beside the clone. To be sourced. Exit code 3: there is neither.
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=0
# Compilers and build nodes end with their build.
export MSBUILDDISABLENODEREUSE=1 UseSharedCompilation=false

has_sdk() {
    command -v dotnet >/dev/null && dotnet --list-sdks | grep '^10\.' >/dev/null
}

kit="$(dirname "${BASH_SOURCE[0]}")/../../../shared/kit/dotnet/env.sh"
if ! has_sdk && [ -x "$kit" ]; then
    eval "$("$kit")"
    # No list of revoked certificates can be had where the packages come from a folder.
    export NUGET_CERT_REVOCATION_MODE=offline
fi
if ! has_sdk; then
    echo "not installed on this machine: .NET SDK 10" >&2
    exit 3
fi
