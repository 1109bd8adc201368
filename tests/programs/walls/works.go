package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

func main() {
	if out, err := exec.Command("echo", "hi").Output(); err != nil || string(out) != "hi\n" {
		panic(fmt.Sprint(out, err))
	}
	// Never yields: only a signal can preempt it.
	go func() {
		for x := 0; ; x++ {
		}
	}()
	time.Sleep(20 * time.Millisecond)
	runtime.GC()
	// Waits by a pidfd.
	process, err := os.StartProcess("/bin/true", nil, &os.ProcAttr{})
	if err != nil {
		panic(err)
	}
	if _, err := process.Wait(); err != nil {
		panic(err)
	}
	// Asks for multipath TCP first.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go net.Dial("tcp", listener.Addr().String())
	if _, err := listener.Accept(); err != nil {
		panic(err)
	}
	fmt.Println("works")
}
