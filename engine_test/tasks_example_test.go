package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"apiengine/examples"
)

// The example of docs/tasks.md: a file of 2000 lines, some of them bad, in slices.
func TestTheImportOfACSVFile(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			w.load(t, w.tenant, examples.FS)
			var csv strings.Builder
			csv.WriteString("id,name,price\r\n")
			for i := range 2000 {
				if i%500 == 250 {
					fmt.Fprintf(&csv, "X%d,no price\r\n", i)
					continue
				}
				fmt.Fprintf(&csv, "X%d,Ding Nummer %d ü,%d\r\n", i, i, i*10)
			}
			upload := func() (file, task string) {
				t.Helper()
				a := w.do(w.tenant, "POST", "/apiengine/csv_upload", asJSON(map[string]string{"Name": "things.csv", "Csv": csv.String()}))
				data, ok := a.JSON.Data.(map[string]any)
				if !ok {
					t.Fatal(a.Body)
				}
				return data["FileId"].(string), data["TaskId"].(string)
			}
			file, id := upload()
			got := w.until(t, id, "Succeeded")
			if got.Slice < 3 || !strings.Contains(string(got.Result), `"Imported":1996,"Bad":4`) || got.Msg != "line 2001" || got.Current != got.Total {
				t.Errorf("%+v %s", got, got.Result)
			}
			if n := w.rows(t, "SELECT count(*) FROM product WHERE id LIKE 'X%' AND fence > 0"); n != "1996" {
				t.Errorf("%s products", n)
			}
			if n := w.rows(t, "SELECT count(*) FROM csv_bad_line"); n != "4" {
				t.Errorf("%s bad lines", n)
			}
			await(t, "the message", func() bool {
				return w.rows(t, "SELECT notice FROM csv_file WHERE id = '"+file+"'") == "things.csv: 1996 imported, 4 bad"
			})
			if f, again := upload(); f != file || again != id {
				t.Errorf("the same file is the task %s, then %s", id, again)
			}
		})
	}
}
