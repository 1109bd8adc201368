package main

import "fmt"

func main() {
	count := 0
	for n := 2; n < 10000; n++ {
		prime := true
		for d := 2; d*d <= n; d++ {
			if n%d == 0 {
				prime = false
				break
			}
		}
		if prime {
			count++
		}
	}
	fmt.Println(count, "primes below 10000")
}
