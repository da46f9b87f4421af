package jsbridge

import "testing"

// Bytes go in as text, as a buffer or as a view of one, and come out as a Uint8Array.
func TestBytes(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`System.Convert.ToBase64String(new Uint8Array([0, 255]))`, "AP8="},
		{`System.Convert.ToBase64String(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))`, "AgM="},
		{`System.Convert.ToBase64String(new Uint8Array([7]).buffer)`, "Bw=="},
		{`System.Convert.ToBase64String(System.Text.Encoding.UTF8.GetBytes('é'))`, "w6k="},
		{`System.Text.Encoding.UTF8.GetString(System.Convert.FromBase64String('w6k='))`, "é"},
		{`(function(){ var raw = System.Convert.FromBase64String('AP8='); return [raw instanceof Uint8Array, raw[1], System.Convert.ToBase64String(raw)].join() })()`, "true,255,AP8="},
		{`V8.EncryptHelper.Sha256Hex('\ud800') === V8.EncryptHelper.Sha256Hex('\ufffd') ? 'replaced' : 'kept'`, "replaced"},
		{`V8.Base64.Base64ToString('not base64!')`, "not base64!"}, {`V8.Base64.Base64ToString('/w==')`, "/w=="},
		{`V8.EncryptHelper.SHA256('') + V8.EncryptHelper.MD5Encrypt('', 16)`, "8f00b204e9800998"},
		{`V8.EncryptHelper.AESDecode('WpwRhkj7P4hIqnk6g18rrw==', '0123456789abcdef')`, "grüße"}, // by openssl, ECB
		{`try { V8.EncryptHelper.AESEncode('a', 'short') } catch (e) { return e.message }`, "V8.EncryptHelper.AESEncode: the key has 5 bytes, not 16, 24 or 32"},
		{`try { V8.EncryptHelper.AESDecode('WpwRhkj7P4hIqnk6g18rrw==', 'ffffffffffffffff') } catch (e) { return e.message }`, "V8.EncryptHelper.AESDecode: the text was not made by AESEncode with this key and iv"},
	} {
		code := c.code
		if code[:3] != "try" {
			code = "return " + code
		}
		if got := result(t, b, env(), code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}
