// expect: timeout
structuredClone({ get a() { for (;;) {} } });
