package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkIdleMemory is what a node keeps resident: fresh, and after 32 connections have
// called it for a second and each has a runtime of its own.
func BenchmarkIdleMemory(b *testing.B) {
	n := startNode(b, "--data-dir", b.TempDir(), "--log-level", "warn")
	n.push(b, map[string]any{"ApiEngineKey": "hello", "AllowAnonymous": true, "ApiV8Code": "return { Code: 1 };"})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(resident(b, n.cmd.Process.Pid), "MB-fresh")
	script := b.TempDir() + "/load.lua"
	if err := os.WriteFile(script, []byte(`wrk.method = "POST"`), 0o600); err != nil {
		b.Fatal(err)
	}
	load(b, n.URL+"/apiengine/hello", script, benchDuration)
	b.ReportMetric(resident(b, n.cmd.Process.Pid), "MB-after-load")
}

// resident is a process's resident set in megabytes.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(after, &kb); err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
