package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"apiengine/lockwrap/embedded"
	"apiengine/store"
)

// lockDataDir keeps a second process out of the data folder.
func (a *App) lockDataDir() error {
	unlock, err := embedded.LockDir(a.Settings.DataDir)
	if err != nil {
		return &SettingError{"data-dir", err.Error()}
	}
	a.onClose(func(context.Context) error { return unlock() })
	return nil
}

// secretKey returns the key for stored secrets: the setting's, else the one in data-dir,
// made at the first start.
func (a *App) secretKey() ([]byte, error) {
	if k := a.Settings.SecretKey; k != "" {
		return parseSecretKey(k)
	}
	text, err := keepFile(filepath.Join(a.Settings.DataDir, "secret-key"), func() string {
		key := make([]byte, 32)
		rand.Read(key) // never fails (crypto/rand)
		return hex.EncodeToString(key)
	})
	if err != nil {
		return nil, &SettingError{"data-dir", err.Error()}
	}
	key, err := parseSecretKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(a.Settings.DataDir, "secret-key"), err)
	}
	return key, nil
}

// keepFile returns what the file holds, or writes a new content into it, readable by its
// owner only. Of two processes that start together one writes and both read the same.
func keepFile(path string, content func() string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		text, err := os.ReadFile(path)
		return strings.TrimSpace(string(text)), err
	}
	if err != nil {
		return "", err
	}
	text := content()
	_, err = f.WriteString(text + "\n")
	return text, errors.Join(err, f.Sync(), f.Close())
}

// adminTokenFile holds, in data-dir, the admin token that the first start made.
const adminTokenFile = "admin-token"

// openAdmin makes sure that there is an admin token: the setting's, else one made at the
// first start. Of nodes that start together on one database only one makes it.
func (a *App) openAdmin(ctx context.Context) error {
	if t := a.Settings.AdminToken; t != "" {
		return a.Store.EnsureAdminToken(ctx, t)
	}
	path := filepath.Join(a.Settings.DataDir, adminTokenFile)
	text, err := keepFile(path, func() string {
		a.newToken = store.NewTokenText()
		return a.newToken
	})
	if err != nil {
		return &SettingError{"data-dir", err.Error()}
	}
	mine, err := a.Store.BootstrapAdminToken(ctx, text)
	if err == nil && a.newToken != "" && !mine { // another node was first: the file would mislead
		a.newToken = ""
		return os.Remove(path)
	}
	return err
}
