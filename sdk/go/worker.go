package corvo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

const (
	fetchWait   = 5 * time.Second // a drain waits for the fetch that is open
	workerPause = 500 * time.Millisecond
	fetchMax    = 512
	traceBytes  = 16_000
)

// A Job is one claim of a job. Decode its payload with Bind.
type Job struct {
	ID            string            `json:"job_id"`
	Queue         string            `json:"queue"`
	Payload       json.RawMessage   `json:"payload"`
	Attempt       int               `json:"attempt"`
	MaxRetries    int               `json:"max_retries"`
	LeaseDuration float64           `json:"lease_duration"` // in seconds; each heartbeat renews it
	LeaseToken    int64             `json:"lease_token"`
	Checkpoint    json.RawMessage   `json:"checkpoint"`
	Tags          map[string]string `json:"tags"`

	report func(progress, checkpoint any) error
}

// Bind decodes the payload. An error that it returns is a failed attempt.
func (j *Job) Bind(into any) error { return json.Unmarshal(j.Payload, into) }

// Progress is shown to people.
func (j *Job) Progress(progress any) error { return j.report(progress, nil) }

// SaveCheckpoint stores where the next attempt begins.
func (j *Job) SaveCheckpoint(checkpoint any) error { return j.report(nil, checkpoint) }

// A Handler does the work. Its result is stored with the job. Its context ends when the job is cancelled, when its lease
// is lost, and when the worker must stop.
type Handler func(ctx context.Context, job *Job) (result any, err error)

// Errors that say how the job goes on; any other is a failed attempt.
type (
	Retry   struct{ After time.Duration } // a failed attempt; the next one after this time
	Snooze  struct{ For time.Duration }   // give the job back for a while: uses no attempt
	Discard struct{ Reason string }       // it can never succeed: no more attempts
)

func (e Retry) Error() string   { return fmt.Sprintf("retry after %s", e.After) }
func (e Snooze) Error() string  { return fmt.Sprintf("snoozed for %s", e.For) }
func (e Discard) Error() string { return e.Reason }

// A Worker fetches the jobs of the queues that have a handler, runs them, and reports what came of them.
type Worker struct {
	Client      *Client
	ID          string        // default: host name and process
	Concurrency int           // default 10
	Lease       time.Duration // a job whose worker is silent for so long is given to another; default 60 s
	Shutdown    time.Duration // how long a drain waits for running jobs; default 30 s
	OverHTTP    bool          // requests instead of the stream
	Log         *slog.Logger

	handlers map[string]Handler
	link     link
	mutex    sync.Mutex
	active   map[string]*running
	freed    chan struct{}
	draining context.CancelFunc
	fetching sync.WaitGroup
	beating  context.CancelFunc
}

type running struct {
	job    *Job
	stop   context.CancelCauseFunc
	isOver bool
}

// Handle registers the handler of a queue. Call it before Start.
func (w *Worker) Handle(queue string, handler Handler) {
	if w.handlers == nil {
		w.handlers = map[string]Handler{}
	}
	w.handlers[queue] = handler
}

// Run works until SIGTERM or SIGINT, then drains. A second signal ends the program.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	w.Start()
	<-ctx.Done()
	stop() // the second one ends the program, as without us
	return w.Drain()
}

// Start begins to work.
func (w *Worker) Start() {
	if w.ID == "" {
		host, _ := os.Hostname()
		w.ID = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if w.Concurrency == 0 {
		w.Concurrency = 10
	}
	if w.Log == nil {
		w.Log = slog.Default()
	}
	w.active, w.freed = map[string]*running{}, make(chan struct{}, 1)
	w.link = link(&streamLink{client: w.Client})
	if w.OverHTTP {
		w.link = httpLink{w.Client}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.draining = cancel
	beats, stopBeats := context.WithCancel(context.Background())
	w.beating = stopBeats
	w.fetching.Add(1)
	go w.fetchLoop(ctx)
	go w.beatLoop(beats)
}

// Drain fetches no more, lets running jobs end, and hands back those that do not end in time.
func (w *Worker) Drain() error {
	w.draining()
	w.fetching.Wait()
	ends := time.Now().Add(orDefault(w.Shutdown, 30*time.Second))
	for w.count() > 0 && time.Now().Before(ends) {
		time.Sleep(20 * time.Millisecond)
	}
	left := w.all()
	for _, one := range left {
		one.stop(errors.New("worker_shutdown"))
		w.settle(one, "fail", handedBack)
	}
	w.beating()
	w.link.close()
	if len(left) > 0 {
		return fmt.Errorf("corvo: %d jobs did not end in time and were handed back", len(left))
	}
	return nil
}

var handedBack = map[string]any{"error": "worker_shutdown", "snooze_ms": 1}

func (w *Worker) fetchLoop(ctx context.Context) {
	defer w.fetching.Done()
	host, _ := os.Hostname()
	want := wanted{WorkerID: w.ID, Hostname: host, LeaseDuration: w.Lease.Seconds()}
	for queue := range w.handlers {
		want.Queues = append(want.Queues, queue)
	}
	for ctx.Err() == nil {
		want.Count = min(w.Concurrency-w.count(), fetchMax)
		if want.Count <= 0 {
			select {
			case <-w.freed:
			case <-ctx.Done():
			}
			continue
		}
		jobs, err := w.link.fetch(context.Background(), want, fetchWait) // a claim that is on its way must arrive
		if err != nil {
			w.Log.Warn("fetch failed", "error", err)
			w.pause(ctx, err)
			continue
		}
		for _, job := range jobs {
			w.begin(&job, ctx.Err() != nil)
		}
	}
}

func (w *Worker) pause(ctx context.Context, err error) {
	wait := workerPause
	var failed *Error
	if errors.As(err, &failed) && failed.RetryAfter > 0 {
		wait = failed.RetryAfter
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

func (w *Worker) begin(job *Job, isDraining bool) {
	ctx, stop := context.WithCancelCause(context.Background())
	one := &running{job: job, stop: stop}
	job.report = func(progress, checkpoint any) error {
		return w.beat([]*running{one}, beat{job.LeaseToken, progress, checkpoint})
	}
	w.mutex.Lock()
	w.active[job.ID] = one
	w.mutex.Unlock()
	if isDraining {
		w.settle(one, "fail", handedBack)
		return
	}
	go func() {
		defer stop(nil)
		result, err := w.call(ctx, job)
		kind, fields := "ack", map[string]any{}
		if err != nil {
			kind, fields = "fail", failureOf(err)
		} else if result != nil {
			fields["result"] = result
		}
		w.settle(one, kind, fields)
	}()
}

func (w *Worker) call(ctx context.Context, job *Job) (result any, err error) {
	handler := w.handlers[job.Queue]
	if handler == nil {
		return nil, fmt.Errorf("no handler for the queue %s", job.Queue)
	}
	defer func() {
		if found := recover(); found != nil {
			err = &panicked{found, debug.Stack()}
		}
	}()
	return handler(ctx, job)
}

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprint("panic: ", p.value) }

func failureOf(err error) map[string]any {
	fields := map[string]any{"error": err.Error()}
	var retry Retry
	var snooze Snooze
	var discard Discard
	var panicked *panicked
	switch {
	case errors.As(err, &snooze):
		fields["snooze_ms"] = max(snooze.For.Milliseconds(), 1)
	case errors.As(err, &retry):
		fields["retry_after_ms"] = retry.After.Milliseconds()
	case errors.As(err, &discard):
		fields["retry"] = false
	case errors.As(err, &panicked):
		fields["backtrace"] = string(panicked.stack[:min(len(panicked.stack), traceBytes)])
	}
	return fields
}

// settle reports until the server took it, or says that the job is not ours any more.
func (w *Worker) settle(one *running, kind string, fields map[string]any) {
	w.mutex.Lock()
	isOver := one.isOver
	one.isOver = true
	w.mutex.Unlock()
	if isOver {
		return
	}
	defer w.forget(one)
	job := one.job
	ends := time.Now().Add(time.Duration(job.LeaseDuration * float64(time.Second))) // then another worker has it
	for time.Now().Before(ends) {
		item := map[string]any{"job_id": job.ID, "lease_token": job.LeaseToken}
		for name, value := range fields {
			item[name] = value
		}
		told, err := w.link.report(context.Background(), kind, item)
		switch {
		case err == nil && told.Status != "":
			return
		case told.Code == "LEASE_LOST", told.Code == "WRONG_STATE", told.Code == "JOB_NOT_FOUND":
			w.Log.Warn("the job is not ours any more", "job", job.ID, "error", told.Error) // or was reported already
			return
		case told.Code == "VALIDATION_ERROR", told.Code == "PAYLOAD_TOO_LARGE", errors.Is(err, ErrInvalid):
			kind, fields = "fail", map[string]any{"error": "the result was refused: " + told.Error}
			continue
		}
		w.Log.Warn("a report was not taken", "job", job.ID, "code", told.Code, "error", err)
		time.Sleep(workerPause)
	}
}

func (w *Worker) beatLoop(ctx context.Context) {
	for {
		pause := orDefault(w.Lease, time.Minute) / 3
		for _, one := range w.all() {
			pause = min(pause, time.Duration(one.job.LeaseDuration*float64(time.Second))/3)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if err := w.beat(w.all(), beat{}); err != nil {
			w.Log.Warn("heartbeat failed", "error", err)
		}
	}
}

func (w *Worker) beat(jobs []*running, told beat) error {
	if len(jobs) == 0 {
		return nil
	}
	beats := map[string]beat{}
	for _, one := range jobs {
		told.LeaseToken = one.job.LeaseToken
		beats[one.job.ID] = told
	}
	statuses, err := w.link.heartbeat(context.Background(), beats)
	for _, one := range jobs {
		switch statuses[one.job.ID].Status {
		case "cancel":
			one.stop(errors.New("cancelled"))
		case "lease_lost", "unknown":
			one.stop(ErrLeaseLost)
			w.mutex.Lock()
			one.isOver = true
			w.mutex.Unlock()
			w.forget(one)
		}
	}
	return err
}

func (w *Worker) forget(one *running) {
	w.mutex.Lock()
	delete(w.active, one.job.ID)
	w.mutex.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

func (w *Worker) count() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.active)
}

func (w *Worker) all() []*running {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	found := make([]*running, 0, len(w.active))
	for _, one := range w.active {
		if !one.isOver {
			found = append(found, one)
		}
	}
	return found
}
