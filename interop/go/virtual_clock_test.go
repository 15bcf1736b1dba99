package interop

// A broker of one's own whose clock a test moves. What is here is all that a project needs to copy.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

var ready = regexp.MustCompile(`^railbus ready listen=([^, ]+).* connection-string="([^"]+)"`)

type virtualBroker struct {
	t                         *testing.T
	address, connectionString string
}

// startVirtual runs `railbus serve --ephemeral --virtual-clock`, with more options, until the test ends.
func startVirtual(t *testing.T, file string, options ...string) virtualBroker {
	t.Helper()
	entities, err := filepath.Abs("../" + file)
	must(t, err)
	arguments := []string{"serve", "--ephemeral", "--virtual-clock", "--listen", "127.0.0.1:0", "--entities", entities}
	command := exec.Command(os.Getenv("RAILBUS_BIN"), append(arguments, options...)...)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	parts := ready.FindStringSubmatch(line)
	if parts == nil {
		t.Fatalf("the broker is not ready: %s", line)
	}
	return virtualBroker{t, parts[1], parts[2]}
}

// advance lets time pass, such as `PT5M`; it returns when all that became due has happened.
func (b virtualBroker) advance(duration string) {
	b.t.Helper()
	b.setClock(map[string]any{"advance": duration})
}

// freeze stops the clock until it is advanced, so that a lock lasts however slow the test is.
func (b virtualBroker) freeze() {
	b.t.Helper()
	b.setClock(map[string]any{"freeze": true})
}

func (b virtualBroker) setClock(change map[string]any) {
	b.t.Helper()
	body, err := json.Marshal(change)
	must(b.t, err)
	answer, err := http.Post("http://"+b.address+"/$railbus/clock", "application/json", bytes.NewReader(body))
	must(b.t, err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		b.t.Fatalf("the clock did not move: %s: %s", answer.Status, text)
	}
}
