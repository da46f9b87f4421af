/*---
ApiEngineKey: minimal
---*/
return 1