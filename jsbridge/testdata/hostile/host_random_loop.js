// expect: timeout
for (;;) Math.random();
