package corvo

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	opContinuation, opText, opClose, opPing, opPong = 0, 1, 8, 9, 10
	messageBytes                                    = 64 << 20
	acceptKey                                       = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" // of RFC 6455
	writeTime                                       = 10 * time.Second
)

// socket is the client's end of one WebSocket: messages of text, as RFC 6455 says.
type socket struct {
	conn    net.Conn
	reader  *bufio.Reader
	writing sync.Mutex
}

func dial(ctx context.Context, address string, header http.Header) (*socket, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	host := target.Host
	if target.Port() == "" {
		host = net.JoinHostPort(target.Hostname(), map[string]string{"https": "443", "http": "80"}[target.Scheme])
	}
	var conn net.Conn
	if target.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: &tls.Config{NextProtos: []string{"http/1.1"}}}).DialContext(ctx, "tcp", host)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	made := &socket{conn: conn, reader: bufio.NewReader(conn)}
	if err := made.open(target, header); err != nil {
		conn.Close()
		return nil, err
	}
	return made, nil
}

func (s *socket) open(target *url.URL, header http.Header) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	key := base64.StdEncoding.EncodeToString(random[:])
	header.Set("Connection", "Upgrade")
	header.Set("Upgrade", "websocket")
	header.Set("Sec-WebSocket-Version", "13")
	header.Set("Sec-WebSocket-Key", key)
	header.Set("Sec-WebSocket-Protocol", "corvo.json.v1")
	request := &http.Request{Method: "GET", URL: target, Host: target.Host, Header: header}
	if err := request.Write(s.conn); err != nil {
		return err
	}
	response, err := http.ReadResponse(s.reader, request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		content, _ := io.ReadAll(io.LimitReader(response.Body, eventBytes))
		return errorOf(response, content)
	}
	sum := sha1.Sum([]byte(key + acceptKey))
	if response.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return errors.New("the server does not speak WebSocket")
	}
	return nil
}

// read returns the next message, and answers pings by the way. One goroutine reads.
func (s *socket) read() ([]byte, error) {
	var message []byte
	for {
		isLast, op, content, err := s.readFrame()
		if err != nil {
			return nil, err
		}
		switch op {
		case opPing:
			err = s.writeFrame(opPong, content)
		case opPong:
		case opClose:
			_ = s.writeFrame(opClose, content)
			return nil, io.EOF
		default:
			if len(message)+len(content) > messageBytes {
				return nil, fmt.Errorf("a message of more than %d bytes", messageBytes)
			}
			message = append(message, content...)
			if isLast {
				return message, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *socket) readFrame() (isLast bool, op byte, content []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(s.reader, head[:]); err != nil {
		return
	}
	size := uint64(head[1] & 0x7f)
	if head[0]&0x70 != 0 || head[1]&0x80 != 0 {
		return false, 0, nil, errors.New("a frame that no server sends")
	}
	if size >= 126 {
		long := make([]byte, 2+6*(size-126))
		if _, err = io.ReadFull(s.reader, long); err != nil {
			return
		}
		if size == 126 {
			size = uint64(binary.BigEndian.Uint16(long))
		} else {
			size = binary.BigEndian.Uint64(long)
		}
	}
	if size > messageBytes {
		return false, 0, nil, fmt.Errorf("a frame of %d bytes", size)
	}
	content = make([]byte, size)
	_, err = io.ReadFull(s.reader, content)
	return head[0]&0x80 != 0, head[0] & 0x0f, content, err
}

func (s *socket) write(message []byte) error { return s.writeFrame(opText, message) }

func (s *socket) writeFrame(op byte, content []byte) error {
	frame := []byte{0x80 | op}
	switch size := len(content); {
	case size < 126:
		frame = append(frame, 0x80|byte(size))
	case size < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(size))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(size))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // never fails
	frame = append(frame, mask[:]...)
	for place, letter := range content {
		frame = append(frame, letter^mask[place%4])
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := s.conn.Write(frame)
	return err
}

func (s *socket) close() { s.conn.Close() }

func streamURL(server string) string { return strings.TrimRight(server, "/") + "/api/v1/stream" }
