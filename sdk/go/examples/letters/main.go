package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"corvo.dev/go"
)

type letter struct{ To string }

func main() {
	ctx, url := context.Background(), os.Getenv("CORVO_URL")
	client := corvo.NewClient(url, "")
	enqueued, err := client.Enqueue(ctx, corvo.EnqueueBody{Queue: "letters.go", Payload: letter{"ada@example.org"}})
	if err != nil {
		log.Fatal(err)
	}

	worker := &corvo.Worker{Client: client, Concurrency: 10}
	worker.Handle("letters.go", func(ctx context.Context, job *corvo.Job) (any, error) {
		var to letter
		if err := job.Bind(&to); err != nil {
			return nil, err
		}
		return map[string]string{"sent": to.To}, job.Progress(map[string]int{"current": 1, "total": 1})
	})
	worker.Start()

	for {
		job, err := client.GetJob(ctx, enqueued.JobID)
		if err != nil {
			log.Fatal(err)
		}
		if job.State == "completed" {
			fmt.Println(job.State, string(job.Result))
			break
		}
	}
	if err := worker.Drain(); err != nil {
		log.Fatal(err)
	}
}
