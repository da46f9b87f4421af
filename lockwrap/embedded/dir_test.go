//go:build linux

package embedded_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"apiengine/lockwrap/embedded"
)

// holdDir is set in the process that TestLockDir starts as the other one.
const holdDir = "EMBEDDED_TEST_HOLD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		if _, err := embedded.LockDir(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends or kills it
		return
	}
	os.Exit(m.Run())
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdDir+"="+dir)
	stdin, err1 := other.StdinPipe()
	stdout, err2 := other.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	defer stdin.Close()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	_, err := embedded.LockDir(dir)
	want := fmt.Sprintf("folder %s is in use: another process (pid %d) runs there", dir, other.Process.Pid)
	if err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	unlock, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatalf("after the other was killed: %v", err)
	}
	if _, err := embedded.LockDir(dir); err == nil {
		t.Error("a second lock of the same process was granted")
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	_ = unlock() // a second call must not harm whoever has the folder now
	again, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

func TestLockDirNamesTheFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := embedded.LockDir(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
}
