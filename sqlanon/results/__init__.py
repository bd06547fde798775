"""The result of a run as one frozen, typed, versioned value, which `--json` prints and the catalog keeps."""
