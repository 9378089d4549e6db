package corvo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Kinds of errors, for errors.Is: each stands for what a program can do about it.
var (
	ErrOverloaded   = errors.New("overloaded")   // nothing was changed; it was asked again until the deadline
	ErrUnavailable  = errors.New("unavailable")  // no leader or no shard; it was asked again until the deadline
	ErrUnreachable  = errors.New("unreachable")  // no answer came: what the request did is not known
	ErrNotFound     = errors.New("not found")    // no such thing
	ErrLeaseLost    = errors.New("lease lost")   // another worker may have the job: drop it
	ErrWrongState   = errors.New("wrong state")  // the job is in a state in which this cannot be done
	ErrInvalid      = errors.New("invalid")      // the request is wrong
	ErrUnauthorized = errors.New("unauthorized") // no credential, or one that does not count
	ErrForbidden    = errors.New("forbidden")    // the credential may not do this
	ErrRefused      = errors.New("refused")      // any other refusal
)

// An Error is an answer that is no success, or none at all.
type Error struct {
	Kind       error  // one of the Err… above
	Code       string // the server's, such as LEASE_LOST
	Status     int    // of HTTP; 0 if no answer came
	Message    string
	Field      string        // that is wrong, of ErrInvalid
	RetryAfter time.Duration // 0: the server named none
}

func (e *Error) Error() string {
	if e.Code == "" {
		return "corvo: " + e.Message
	}
	return fmt.Sprintf("corvo: %s: %s", e.Code, e.Message)
}

func (e *Error) Is(target error) bool { return e.Kind == target }

var kindOfStatus = map[int]error{
	400: ErrInvalid, 401: ErrUnauthorized, 403: ErrForbidden, 404: ErrNotFound, 409: ErrWrongState,
	413: ErrInvalid, 415: ErrInvalid, 422: ErrInvalid, 429: ErrOverloaded, 503: ErrUnavailable,
}

func errorOf(response *http.Response, content []byte) *Error {
	var body struct {
		Error        string `json:"error"`
		Code         string `json:"code"`
		Field        string `json:"field"`
		RetryAfterMS int    `json:"retry_after_ms"`
	}
	if json.Unmarshal(content, &body) != nil || body.Error == "" {
		body.Error = string(content[:min(len(content), 300)]) // a page of a proxy
	}
	failed := &Error{Code: body.Code, Status: response.StatusCode, Message: body.Error, Field: body.Field}
	failed.Kind = kindOfStatus[response.StatusCode]
	if body.Code == "LEASE_LOST" {
		failed.Kind = ErrLeaseLost
	}
	if failed.Kind == nil {
		failed.Kind = ErrRefused
	}
	failed.RetryAfter = time.Duration(body.RetryAfterMS) * time.Millisecond
	if seconds, err := strconv.ParseFloat(response.Header.Get("Retry-After"), 64); err == nil {
		failed.RetryAfter = time.Duration(seconds * float64(time.Second))
	}
	return failed
}

func unreachable(err error) *Error {
	return &Error{Kind: ErrUnreachable, Message: err.Error()}
}
