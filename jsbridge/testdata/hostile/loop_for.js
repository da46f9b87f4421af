// expect: timeout
for (;;) {}
