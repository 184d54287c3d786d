// Goparse reads lines of base64, each the bytes of one connection, and prints for each, as one line of JSON, the requests
// (or, called as "goparse responses", the responses to GET requests) that Go's net/http finds in them. Strings are base64,
// because they are bytes. A response has its status where a request has its method.
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
	"strconv"
)

type message struct {
	Method   string     `json:"method"`
	Target   string     `json:"target"`
	Host     string     `json:"host"`
	Body     string     `json:"body"`
	Fields   [][]string `json:"fields"`
	Trailers [][]string `json:"trailers"`
}

type reading struct {
	Messages []message `json:"messages"`
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

func readRequest(in *bufio.Reader) (message, error) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return message{}, err
	}
	body, err := io.ReadAll(r.Body)
	return message{
		b64(r.Method), b64(r.RequestURI), b64(r.Host), b64(string(body)), pairs(r.Header), pairs(r.Trailer),
	}, err
}

func readResponse(in *bufio.Reader) (message, error) {
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return message{}, err
	}
	body, err := io.ReadAll(r.Body)
	return message{b64(strconv.Itoa(r.StatusCode)), "", "", b64(string(body)), pairs(r.Header), pairs(r.Trailer)}, err
}

func read(data []byte, one func(*bufio.Reader) (message, error)) reading {
	found := reading{Messages: []message{}}
	in := bufio.NewReaderSize(bytes.NewReader(data), 1<<20)
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return found
		}
		m, err := one(in)
		if err != nil {
			found.Rest = "error: " + err.Error()
			if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
				found.Rest = "incomplete"
			}
			return found
		}
		found.Messages = append(found.Messages, m)
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	one := readRequest
	if len(os.Args) > 1 && os.Args[1] == "responses" {
		one = readResponse
	}
	for in.Scan() {
		data, err := base64.StdEncoding.DecodeString(in.Text())
		if err != nil {
			panic(err)
		}
		if err := out.Encode(read(data, one)); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}
