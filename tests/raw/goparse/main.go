// Goparse reads lines of base64, each the bytes that one origin connection received, and prints for each, as one line of
// JSON, the requests that Go's net/http finds in them. Strings are base64, because they are bytes.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sort"
)

type request struct {
	Method   string     `json:"method"`
	Target   string     `json:"target"`
	Host     string     `json:"host"`
	Body     string     `json:"body"`
	Fields   [][]string `json:"fields"`
	Trailers [][]string `json:"trailers"`
}

type reading struct {
	Requests []request `json:"requests"`
	Rest     string    `json:"rest"`
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func pairs(header http.Header) [][]string {
	out := [][]string{}
	for name, values := range header {
		if name == "Content-Length" || name == "Transfer-Encoding" {
			continue
		}
		for _, value := range values {
			out = append(out, []string{b64(name), b64(value)})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i][0] < out[j][0] })
	return out
}

func read(data []byte) reading {
	found := reading{Requests: []request{}}
	in := bufio.NewReaderSize(bytes.NewReader(data), 1<<20)
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return found
		}
		r, err := http.ReadRequest(in)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(r.Body)
		}
		if err != nil {
			found.Rest = "error: " + err.Error()
			if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
				found.Rest = "incomplete"
			}
			return found
		}
		found.Requests = append(found.Requests, request{
			b64(r.Method), b64(r.RequestURI), b64(r.Host), b64(string(body)), pairs(r.Header), pairs(r.Trailer),
		})
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		data, err := base64.StdEncoding.DecodeString(in.Text())
		if err != nil {
			panic(err)
		}
		if err := out.Encode(read(data)); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}
