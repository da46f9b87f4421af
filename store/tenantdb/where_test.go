package tenantdb

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"apiengine/store/tenantdb/internal/sqltext"
)

// FuzzWhere: whatever a script passes as _Where, what comes out is one expression over
// known columns with every value a parameter: it parses as one statement in both dialects.
func FuzzWhere(f *testing.F) {
	for _, s := range []string{
		`[["Name","=","x"]]`, `["OR","(","Age","In",[1,null,"2"],")"]`, `[[["Age",">",1],["OR",{"Name":"Name","Value":null}]]]`,
		`{"Name":"Age","Type":"NotIn","Value":"(1,'2')","GroupStart":"((","GroupEnd":"))"}`, `[["Name","Like","%_\\'\""],["AND",[["Age","<>",null]]]]`,
		`"[[\"Age\",\"In\",\"[1]\"]]"`, `[["Name\"--","=",1]]`, `[[]]`, `[["AND",[]]]`,
	} {
		f.Add(s)
	}
	t0 := &table{name: "t", columns: []column{{"Name", "text"}, {"Age", "int4"}}}
	f.Fuzz(func(t *testing.T, raw string) {
		if !gjson.Valid(raw) {
			return
		}
		conditions, err := parseWhere(gjson.Parse(raw))
		if err != nil {
			return
		}
		for _, g := range []grammar{liteGrammar, pgGrammar} {
			b := &builder{g: g}
			b.add("SELECT 1 FROM t WHERE (")
			if len(conditions) == 0 || b.where(t0, conditions) != nil {
				continue
			}
			b.add(")")
			sql := b.sql.String()
			params := map[string]any{}
			for i := range b.args {
				params["p"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = nil
			}
			// The numbered placeholders become named ones, so that the statement can be checked.
			named := numbered(sql, g.sign, len(b.args))
			if _, err := sqltext.Parse(sqltext.Rules{Dialect: g.dialect}, named, params); err != nil {
				t.Errorf("%s became %s: %v", raw, sql, err)
			}
			if strings.Count(sql, "(") != strings.Count(sql, ")") {
				t.Errorf("%s became %s", raw, sql)
			}
		}
	})
}

func numbered(sql, sign string, n int) string {
	for i := n; i > 0; i-- {
		sql = strings.ReplaceAll(sql, sign+strconv.Itoa(i), "@p"+string(rune('a'+(i-1)%26))+strings.Repeat("x", (i-1)/26))
	}
	return sql
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"Nmae", "; did you mean Name?"}, {"age", "; did you mean Age?"}, {"Completely", ""}, {"", ""},
	} {
		if got := meant(c.name, []string{"Name", "Age"}); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestISOTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-02 03:04:05": "2026-01-02T03:04:05", "2026-01-02 03:04:05.1+08": "2026-01-02T03:04:05.1+08:00",
		"2026-01-02 03:04:05-03:30": "2026-01-02T03:04:05-03:30", "2026-01-02 03:04:05+00": "2026-01-02T03:04:05Z",
		"infinity": "infinity", "0044-03-15 00:00:00 BC": "0044-03-15 00:00:00 BC",
	} {
		if got := isoTime(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
