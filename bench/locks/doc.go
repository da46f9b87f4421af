// Command locks measures apiengine's distributed lock beside other Go libraries that lock in
// Redis, in one run against one redis-server of its own, and prints Markdown tables:
//
//	go run ./locks [-rounds 3] [-time 2s] [-only apiengine,redsync] [-settings 16x1]
//
// In each setting the contenders take turns, round after round, the order reversed every
// other round; the figures are medians of the rounds, so that what else the machine does
// meets all alike. It is a module of its own: the others' code is no dependency of apiengine.
package main
