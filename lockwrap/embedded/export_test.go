package embedded

// Slots counts the locks that b remembers.
func Slots(b *Backend) (n int) {
	for i := range b.shards {
		b.shards[i].mu.Lock()
		n += len(b.shards[i].slots)
		b.shards[i].mu.Unlock()
	}
	return n
}
