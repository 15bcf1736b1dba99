# What a command begins with that only root may run. Sourced, not run.

privilege=()
if [ "$(id -u)" -ne 0 ]; then
    privilege=(sudo --non-interactive --preserve-env)
fi
