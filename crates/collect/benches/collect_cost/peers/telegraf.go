// Telegraf with the plugins that the bench needs; with all of them it takes long to build. In a folder of its own with this
// file as main.go:
//
//	go mod init telegraf && go get github.com/influxdata/telegraf@v1.37.2 && go mod tidy && go build
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/config"
	_ "github.com/influxdata/telegraf/plugins/inputs/mqtt_consumer"
	_ "github.com/influxdata/telegraf/plugins/outputs/parquet"
	_ "github.com/influxdata/telegraf/plugins/parsers/value"
)

func main() {
	collected := config.NewConfig()
	if err := collected.LoadConfig(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := agent.NewAgent(collected).Run(ctx); err != nil {
		log.Fatal(err)
	}
}
