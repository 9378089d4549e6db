// Package corvo is a client and a worker for Corvo, a job processing server.
package corvo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

//go:generate go run ./cmd/generate

const (
	firstPause  = 100 * time.Millisecond
	pauseMax    = 5 * time.Second
	answerBytes = 64 << 20
)

type route struct {
	method  string
	path    string
	hasBody bool
	repeats string        // whether a request without an answer may be sent again: freely, by key, never
	wait    time.Duration // how long the server may hold the answer back
}

// A Client has a method for each endpoint. It is safe for concurrent use; the zero values of its fields are useful.
type Client struct {
	URL      string // such as https://jobs.example.com
	APIKey   string
	HTTP     *http.Client  // default: one of its own
	Timeout  time.Duration // for one answer, beyond the time that the server may hold it back; default 10 s
	Deadline time.Duration // for all attempts of one call, unless the context ends earlier; default 15 s
}

// NewClient makes a client with the defaults.
func NewClient(url, apiKey string) *Client { return &Client{URL: url, APIKey: apiKey} }

// Ptr is for optional fields: Ptr(5).
func Ptr[T any](value T) *T { return &value }

// Call calls any endpoint by its name. A request is sent again only if it cannot be carried out twice.
func (c *Client) Call(ctx context.Context, name string, path []string, sent, answer any) error {
	to, ok := routes[name]
	if !ok {
		return fmt.Errorf("corvo: there is no endpoint %q", name)
	}
	address, body, err := c.compose(to, path, sent)
	if err != nil {
		return err
	}
	key := ""
	if to.repeats == "by key" {
		key = newKey()
	}
	ctx, cancel := context.WithTimeout(ctx, orDefault(c.Deadline, 15*time.Second)+to.wait+waitOf(body))
	defer cancel()
	patience := orDefault(c.Timeout, 10*time.Second) + to.wait + waitOf(body)
	for attempt := 0; ; attempt++ {
		err := c.send(ctx, to.method, address, body, key, attempt, patience, answer)
		pause := pauseAfter(err, to.repeats, attempt)
		ends, _ := ctx.Deadline()
		if pause < 0 || time.Now().Add(pause).After(ends) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// first is the query that was given, if one was.
func first[T any](given []T) any {
	if len(given) == 0 {
		return nil
	}
	return given[0]
}

func (c *Client) compose(to route, path []string, sent any) (address string, body []byte, err error) {
	filled := parameterValues(to.path, path)
	if to.hasBody {
		if sent != nil {
			body, err = json.Marshal(sent)
		}
		return strings.TrimRight(c.URL, "/") + filled, body, err
	}
	query, err := queryOf(sent)
	return strings.TrimRight(c.URL, "/") + filled + query, nil, err
}

func (c *Client) send(
	ctx context.Context, method, address string, body []byte, key string, attempt int, patience time.Duration, answer any,
) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	c.identify(request.Header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
		request.Header.Set("X-Corvo-Attempt", strconv.Itoa(attempt+1))
	}
	response, err := c.http().Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return unreachable(err)
	}
	if response.StatusCode >= 300 {
		return errorOf(response, content)
	}
	if len(content) == 0 || answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

func (c *Client) identify(header http.Header) {
	header.Set("Accept", "application/json")
	if c.APIKey != "" {
		header.Set("X-API-Key", c.APIKey)
	}
}

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

// pauseAfter is negative where a request must not be sent again.
func pauseAfter(err error, repeats string, attempt int) time.Duration {
	var failed *Error
	if err == nil || !errors.As(err, &failed) {
		return -1
	}
	backoff := min(firstPause<<min(attempt, 10), pauseMax)
	switch {
	case failed.Kind == ErrUnreachable, failed.Code == "OUTCOME_UNKNOWN", failed.Code == "DEADLINE_EXCEEDED":
		if repeats == "never" {
			return -1
		}
		return backoff
	case failed.Kind == ErrOverloaded, failed.Kind == ErrUnavailable:
		if failed.RetryAfter > 0 {
			return failed.RetryAfter
		}
		return backoff
	}
	return -1
}

func parameterValues(path string, values []string) string {
	pieces := strings.Split(path, "/")
	for place, piece := range pieces {
		if strings.HasPrefix(piece, "{") && len(values) > 0 {
			pieces[place], values = url.PathEscape(values[0]), values[1:]
		}
	}
	return strings.Join(pieces, "/")
}

func queryOf(query any) (string, error) {
	if query == nil {
		return "", nil
	}
	text, err := json.Marshal(query)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || len(fields) == 0 {
		return "", err
	}
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, fmt.Sprint(value))
	}
	return "?" + values.Encode(), nil
}

// waitOf is how long a fetch may wait.
func waitOf(body []byte) time.Duration {
	var fetch struct {
		Timeout float64 `json:"timeout"`
	}
	if json.Unmarshal(body, &fetch) != nil {
		return 0
	}
	return time.Duration(fetch.Timeout * float64(time.Second))
}

func orDefault(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}

// newKey is a UUID of version 7: the ids that follow from it sort by the time of their request.
func newKey() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	now := time.Now().UnixMilli()
	for place := range 6 {
		id[place] = byte(now >> (40 - 8*place))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
