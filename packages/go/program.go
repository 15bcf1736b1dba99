package railbus

import (
	"errors"
	"os"
	"os/exec"
)

// FindProgram returns the path of the program: the one that RAILBUS_BIN names, or the one on PATH.
func FindProgram() (string, error) {
	if named := os.Getenv("RAILBUS_BIN"); named != "" {
		return named, nil
	}
	found, err := exec.LookPath("railbus")
	if err != nil {
		return "", errors.New("the program railbus is missing: put it on PATH, or name it in RAILBUS_BIN")
	}
	return found, nil
}
