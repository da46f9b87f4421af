package jsbridge

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
	"unicode/utf8"
)

// encryptFuncs are V8.EncryptHelper. Letter case, argument order and the answer for an
// empty text are the original platform's, since digests are compared as text and stored.
func encryptFuncs() []Func {
	return []Func{
		Fn("EncryptHelper.MD5Encrypt", "the MD5 in lower case hex; length 16 gives its middle half",
			func(_ *Call, in struct {
				Text   []byte
				Length int64 `js:"length,optional"`
			}) (any, error) {
				sum := hexOf(md5.New(), in.Text)
				if in.Length == 16 {
					return sum[8:24], nil
				}
				return sum, nil
			}),
		digestFn("SHA1", "the SHA-1 in UPPER case hex; of an empty text the empty text", sha1.New),
		digestFn("SHA256", "the SHA-256 in UPPER case hex; of an empty text the empty text", sha256.New),
		digestFn("SHA512", "the SHA-512 in UPPER case hex; of an empty text the empty text", sha512.New),
		Fn("EncryptHelper.Sha256Hex", "the SHA-256 in lower case hex",
			func(_ *Call, in struct{ Text []byte }) (any, error) { return hexOf(sha256.New(), in.Text), nil }),
		Fn("EncryptHelper.HmacSha256", "the HMAC-SHA-256 of text under secret, in lower case hex",
			func(_ *Call, in struct{ Secret, Text []byte }) (any, error) {
				return hexOf(hmac.New(sha256.New, in.Secret), in.Text), nil
			}),
		Fn("EncryptHelper.AESEncode", "the text encrypted with AES and PKCS7 padding, in base64: CBC with iv (give one), ECB without, which shows equal blocks; keys have 16, 24 or 32 bytes, an iv 16",
			func(_ *Call, in aesArgs) (any, error) {
				block, err := in.block("AESEncode")
				if err != nil {
					return nil, err
				}
				pad := aes.BlockSize - len(in.Text)%aes.BlockSize
				data := append(bytes.Clone(in.Text), bytes.Repeat([]byte{byte(pad)}, pad)...)
				in.mode(block, true).CryptBlocks(data, data)
				return base64.StdEncoding.EncodeToString(data), nil
			}),
		Fn("EncryptHelper.AESDecode", "the text that AESEncode made unreadable", aesDecode),
	}
}

func digestFn(name, doc string, h func() hash.Hash) Func {
	return Fn("EncryptHelper."+name, doc, func(_ *Call, in struct{ Text []byte }) (any, error) {
		if len(in.Text) == 0 {
			return "", nil
		}
		return strings.ToUpper(hexOf(h(), in.Text)), nil
	})
}

func hexOf(h hash.Hash, text []byte) string {
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

type aesArgs struct {
	Text []byte
	Key  []byte
	IV   []byte `js:"iv,optional"`
}

func (in aesArgs) block(fn string) (cipher.Block, error) {
	block, err := aes.NewCipher(in.Key)
	if err != nil {
		return nil, argErrorf("V8.EncryptHelper.%s: the key has %d bytes, not 16, 24 or 32", fn, len(in.Key))
	}
	if len(in.IV) != 0 && len(in.IV) != aes.BlockSize {
		return nil, argErrorf("V8.EncryptHelper.%s: the iv has %d bytes, not 16", fn, len(in.IV))
	}
	return block, nil
}

func (in aesArgs) mode(block cipher.Block, encrypt bool) cipher.BlockMode {
	switch {
	case len(in.IV) == 0:
		return ecb{block, encrypt}
	case encrypt:
		return cipher.NewCBCEncrypter(block, in.IV)
	}
	return cipher.NewCBCDecrypter(block, in.IV)
}

func aesDecode(_ *Call, in aesArgs) (any, error) {
	block, err := in.block("AESDecode")
	if err != nil {
		return nil, err
	}
	wrong := argErrorf("V8.EncryptHelper.AESDecode: the text was not made by AESEncode with this key and iv")
	data, err := decodeBase64(string(in.Text))
	if err != nil || len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, wrong
	}
	in.mode(block, false).CryptBlocks(data, data)
	pad := int(data[len(data)-1])
	if pad == 0 || pad > aes.BlockSize || !bytes.HasSuffix(data, bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, wrong
	}
	if data = data[:len(data)-pad]; !utf8.Valid(data) {
		return nil, wrong
	}
	return string(data), nil
}

// ecb encrypts block by block. The standard library leaves it out because equal blocks
// stay visible; it is here for texts that other systems have encrypted that way.
type ecb struct {
	block   cipher.Block
	encrypt bool
}

func (e ecb) BlockSize() int { return e.block.BlockSize() }

func (e ecb) CryptBlocks(dst, src []byte) {
	one := e.block.Decrypt
	if e.encrypt {
		one = e.block.Encrypt
	}
	for n := e.BlockSize(); len(src) > 0; dst, src = dst[n:], src[n:] {
		one(dst, src)
	}
}
