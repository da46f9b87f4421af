// expect: limit_stack
var o = {}; o.toJSON = V8.Cache.Set.bind(V8.Cache, 'k', o); V8.Cache.Set('k', o);
