// Package railbus runs a Railbus broker for the time of a test.
//
// A broker keeps its messages in a temporary directory and listens on a free port. It ends with the test, and also
// when the process of the test is killed.
package railbus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

var (
	ready = regexp.MustCompile(`^railbus ready listen=([^, ]+).* connection-string="([^"]+)"`)
	// The settings of a broker are its options, whatever is configured on the machine.
	ignored = regexp.MustCompile(`^(RAILBUS_.*|CONFIG_PATH|EMULATOR_HTTP_PORT)=`)
)

// Option changes how a broker is started.
type Option func(*options)

type options struct {
	port      int
	arguments []string
}

// Entities creates the entities of a file: a Config.json of the Service Bus emulator, or TOML or JSON of Railbus's own
// shape.
func Entities(file string) Option {
	return Arguments("--entities", file)
}

// Port listens on a port that is given, not on any that is free.
func Port(port int) Option {
	return func(options *options) { options.port = port }
}

// Arguments are further options of `railbus serve`.
func Arguments(arguments ...string) Option {
	return func(options *options) { options.arguments = append(options.arguments, arguments...) }
}

// Broker is a running broker.
type Broker struct {
	// ConnectionString is what the Azure SDKs take.
	ConnectionString string
	// Address is host and port, for AMQP and HTTP.
	Address string

	command *exec.Cmd
	stdin   io.Closer
	log     *os.File
}

// Start starts a broker that is stopped at the end of the test. If the test fails, the broker's log is in its output.
func Start(t testing.TB, given ...Option) *Broker {
	t.Helper()
	broker, err := Run(given...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Stop(); err != nil {
			t.Errorf("railbus: %v", err)
		}
		if t.Failed() {
			t.Logf("log of railbus:\n%s", broker.Log())
		}
	})
	return broker
}

// Run starts a broker without a test, for TestMain. The caller stops it.
func Run(given ...Option) (*Broker, error) {
	var chosen options
	for _, option := range given {
		option(&chosen)
	}
	program, err := FindProgram()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "railbus-")
	if err != nil {
		return nil, err
	}
	// Without a name nothing is left of it.
	if err := os.Remove(log.Name()); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	arguments := []string{"serve", "--ephemeral", "--virtual-clock", "--exit-on-stdin-close", "--config", os.DevNull}
	arguments = append(arguments, "--listen", "127.0.0.1:"+strconv.Itoa(chosen.port))
	broker := &Broker{command: exec.Command(program, append(arguments, chosen.arguments...)...), log: log}
	if err := broker.start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return broker, nil
}

func (broker *Broker) start() error {
	command := broker.command
	command.Stderr = broker.log
	for _, variable := range os.Environ() {
		if !ignored.MatchString(variable) {
			command.Env = append(command.Env, variable)
		}
	}
	// Ctrl-C is for the tests, which then stop their brokers.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	broker.stdin = stdin
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", command.Path, err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	words := ready.FindStringSubmatch(line)
	if words == nil {
		return fmt.Errorf("railbus ended before it was ready: %v\n%s", broker.Stop(), broker.Log())
	}
	broker.Address, broker.ConnectionString = words[1], words[2]
	return nil
}

// Stop stops the broker. It is an error if it did not end as it should.
func (broker *Broker) Stop() error {
	broker.stdin.Close()
	return broker.command.Wait()
}

// Advance lets time pass. What becomes due has happened when it returns.
func (broker *Broker) Advance(duration time.Duration) error {
	return broker.setClock(map[string]any{"advance": iso(duration)})
}

// Freeze stops broker time until it is advanced, or lets it run again.
func (broker *Broker) Freeze(frozen bool) error {
	return broker.setClock(map[string]any{"freeze": frozen})
}

// Log is what the broker has logged. RUST_LOG says how much that is.
func (broker *Broker) Log() string {
	size, err := broker.log.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(broker.log, 0, size))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (broker *Broker) setClock(change map[string]any) error {
	return request(broker.Address, http.MethodPost, "clock", "", change, nil)
}
