// expect: timeout
for (;;) { try { for (;;) {} } catch (e) {} finally { continue; } }
