package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func main() {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		panic(err)
	}
	fmt.Println(runtime.NumCPU(), runtime.GOMAXPROCS(0), os.Getpagesize(), runtime.GOARCH, info.Totalram)
}
