package railbus

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// kept makes this program start a broker, say so, and wait to be killed.
const kept = "RAILBUS_TEST_KEEPS_A_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(kept) != "" {
		broker, err := Run()
		fmt.Println("started", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = broker.Stop()
	}
	os.Exit(m.Run())
}

func TestNothingIsLeftOfAProcessThatIsKilled(t *testing.T) {
	temporary := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), kept+"=1", "TMPDIR="+temporary)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if line != "started <nil>\n" {
		t.Fatalf("the parent says %q", line)
	}
	child := childOf(t, parent.Process.Pid)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	// Returns when the process has ended, without asking again and again.
	if err := exec.Command("tail", "--pid", child, "-f", os.DevNull).Run(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Fatalf("%v is left, %v", left, err)
	}
}

func childOf(t *testing.T, parent int) string {
	listed, err := exec.Command("ps", "-o", "pid=", "--ppid", fmt.Sprint(parent)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(listed))
}

func TestATakenPortIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Run(Port(taken.Addr().(*net.TCPAddr).Port))
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Fatalf("the error is %v", err)
	}
}

func TestAMissingProgramIsAClearError(t *testing.T) {
	t.Setenv("RAILBUS_BIN", "/nowhere/railbus")
	if _, err := Run(); err == nil || !strings.HasPrefix(err.Error(), "/nowhere/railbus cannot be started: ") {
		t.Fatalf("the error is %v", err)
	}
	t.Setenv("RAILBUS_BIN", "")
	t.Setenv("PATH", "")
	if _, err := Run(); err == nil || !strings.HasPrefix(err.Error(), "the program railbus is missing: ") {
		t.Fatalf("the error is %v", err)
	}
}

func TestTimePasses(t *testing.T) {
	broker := Start(t)
	if err := broker.Freeze(true); err != nil {
		t.Fatal(err)
	}
	if err := broker.Advance(24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := broker.Advance(-time.Hour); err == nil {
		t.Fatal("time went back")
	}
}

// recorder is a test that fails and keeps what it would print.
type recorder struct {
	testing.TB
	cleanups []func()
	printed  strings.Builder
}

func (recorder *recorder) Helper()      { /* Nothing to hide. */ }
func (recorder *recorder) Failed() bool { return true }
func (recorder *recorder) Cleanup(cleanup func()) {
	recorder.cleanups = append(recorder.cleanups, cleanup)
}
func (recorder *recorder) Logf(format string, values ...any) {
	fmt.Fprintf(&recorder.printed, format, values...)
}

func TestAFailedTestShowsTheLog(t *testing.T) {
	failing := &recorder{TB: t}
	Start(failing)
	for _, cleanup := range failing.cleanups {
		cleanup()
	}
	if printed := failing.printed.String(); !strings.Contains(printed, "WARN the clock is virtual") {
		t.Fatalf("it prints %q", printed)
	}
}

func TestAStartTakesMilliseconds(t *testing.T) {
	var took []time.Duration
	for range 5 {
		began := time.Now()
		broker, err := Run()
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := broker.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	t.Logf("ready after %v (median of %d)", took[2], len(took))
}
