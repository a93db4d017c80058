public import ThicketNet
public import ThicketPlatform
public import ThicketProtocol
public import ThicketTreeShape

extension ErrorCode: MetricLabel {
    /// The numeric code.
    public var labelText: String { String(rawValue) }
}

extension RefusalReason: MetricLabel {}

/// Everything the server counts, one property each; `/metrics` shows them all. The help text of each metric is its
/// full description.
///
/// To add a metric, add a property here and a row in `docs/OPERATIONS.md` (a test compares the two). Metrics are
/// named `thicket_<noun>_<unit>[_total]`. One instance belongs to one server and is passed to its parts; any thread
/// may use it.
public final class Metrics: Sendable {
    /// All metrics, at 0.
    public init() {
        let limitHits = CounterFamily<LimitName>(
            "thicket_limit_hits_total", by: "limit", "Times a limit was reached, by limit.")
        self.limitHits = limitHits
        net = NetMetrics { (limit: NetLimit) in limitHits.add(1, LimitName(limit)) }
    }

    /// What the network loop counts.
    public let net: NetMetrics

    // MARK: Connections

    /// HTTP requests, by route.
    public let httpRequests = CounterFamily<Route>(
        "thicket_http_requests_total", by: "route", "HTTP requests, by route.")
    /// Answers of the data API, by status.
    public let restAnswers = CounterFamily<RESTStatus>(
        "thicket_rest_answers_total", by: "code", "Answers of the data API, by status.")
    /// HTTP requests that wait for changes now.
    public let restWaiters = Gauge("thicket_rest_waiters", "HTTP requests that wait for changes now.")

    // MARK: SockJS

    /// SockJS sessions kept now.
    public let sockJSSessions = Gauge("thicket_sockjs_sessions", "SockJS sessions kept now.")
    /// SockJS sessions begun, by first transport.
    public let sockJSOpened = CounterFamily<SockJSTransportLabel>(
        "thicket_sockjs_sessions_opened_total", by: "transport", "SockJS sessions begun, by their first transport.")
    /// Bytes that wait for the next request of a SockJS client.
    public let sockJSQueuedBytes = Gauge(
        "thicket_sockjs_queued_bytes", "Bytes that wait for the next request of a SockJS client.")

    // MARK: Sessions

    /// Authorized channels open now.
    public let channels = Gauge("thicket_channels", "Authorized channels open now.")
    /// Messages from clients, by command.
    public let messagesReceived = CounterFamily<Command>(
        "thicket_messages_received_total", by: "command", "Messages from clients, by command.")
    /// `init` messages, by outcome.
    public let authorizations = CounterFamily<Authorization>(
        "thicket_authorizations_total", by: "result",
        "init messages, by outcome; ended: channels whose token has ended or was signed out.")
    /// Partners' tokens, by verdict.
    public let tokens = CounterFamily<TokenVerdict>(
        "thicket_partner_tokens_total", by: "result", "Tokens of partners, by verdict.")
    /// Proofs of built-in accounts, by verdict.
    public let logins = CounterFamily<LoginVerdict>(
        "thicket_account_logins_total", by: "result", "Proofs of built-in accounts, by verdict.")
    /// Messages to users, by outcome.
    public let mails = CounterFamily<MailOutcome>(
        "thicket_mails_total", by: "result", "Messages to users, by outcome.")
    /// Attempts to deliver a message, by outcome.
    public let mailDeliveries = CounterFamily<MailDelivery>(
        "thicket_mail_deliveries_total", by: "result",
        "Attempts to deliver a message to the mail server, by outcome.")
    /// Messages that wait for a mail server.
    public let mailsWaiting = Gauge(
        "thicket_mails_waiting", "Messages to users that wait for a mail server.")
    /// Changes queued for subscribers, the author's own copy included.
    public let deliveries = Counter(
        "thicket_deliveries_total", "Changes queued for subscribers, the author's own copy included.")
    /// Limits reached, by limit.
    public let limitHits: CounterFamily<LimitName>

    // MARK: Changes

    /// Changes committed.
    public let changesApplied = Counter("thicket_changes_applied_total", "Changes accepted and on disk.")
    /// Changes refused, by code.
    public let changesRefused = CounterFamily<ErrorCode>(
        "thicket_changes_refused_total", by: "code", "Changes refused, by the code of the answer.")
    /// Changes refused in sealed buckets, by reason.
    public let sealedRefused = CounterFamily<SealedFault>(
        "thicket_sealed_refused_total", by: "reason", "Changes refused in sealed buckets, by reason.")
    /// Changes refused in trees, by reason.
    public let treeRefused = CounterFamily<RefusalReason>(
        "thicket_tree_refused_total", by: "reason", "Changes refused in trees, by the reason in the answer.")
    /// Batches of trees that were answered with success.
    public let treeBatches = Counter(
        "thicket_tree_batches_total", "Batches of trees that were made, repeated ones included.")
    /// Nodes removed because their burn time has come.
    public let treeBurned = Counter(
        "thicket_tree_burned_total", "Nodes of trees that were removed because their burn time has come.")
    /// Changes of older versions that were transformed.
    public let changesRebased = Counter(
        "thicket_changes_rebased_total", "Changes of older versions that were transformed.")
    /// Time from a change's arrival until its acknowledgement is queued.
    public let changeSeconds: Histogram = .seconds(
        "thicket_change_seconds", "Time from a change's arrival until its acknowledgement is queued.")
    /// Processor time of each deferred change.
    public let deferredChangeSeconds: Histogram = .seconds(
        "thicket_long_decision_seconds", "Processor time of each deferred change.")
    /// Changes that await their commit.
    public let changesQueued = Gauge("thicket_changes_queued", "Changes that await their commit.")
    /// Memory of the changes that await their commit, bytes.
    public let changesQueuedBytes = Gauge(
        "thicket_changes_queued_bytes", "Bytes of memory of the changes that await their commit.")
    /// Buckets in memory.
    public let bucketsLive = Gauge("thicket_buckets_live", "Buckets held in memory.")
    /// Bytes in memory, by cache.
    public let cacheBytes = GaugeFamily<CacheName>(
        "thicket_cache_bytes", by: "cache", "Bytes in memory, by cache.")
    /// `cv` requests, by source of the answer.
    public let catchUps = CounterFamily<CatchUp>(
        "thicket_catch_ups_total", by: "source", "cv requests, by source of the answer.")
    /// Index scans restarted because the log was cut.
    public let scansRestarted = Counter(
        "thicket_walks_restarted_total", "Index scans that began again because the log was cut under them.")

    // MARK: Keys

    /// Look-ups of keys, and questions about heads, that were answered.
    public let keyLookups = Counter(
        "thicket_key_lookups_total", "Look-ups of keys, and questions about heads of key logs, that were answered.")
    /// Requests that appended entries.
    public let keyAppends = Counter(
        "thicket_key_appends_total", "Requests that appended entries to key logs, repeated ones included.")
    /// Entries of the key logs in memory.
    public let keyEntries = Gauge("thicket_key_log_entries", "Entries of the key logs in memory, of all apps.")

    // MARK: Blobs

    /// Requests about blobs in progress.
    public let blobTransfers = Gauge("thicket_blob_transfers", "Requests about blobs in progress.")
    /// Pieces of work that wait for a blob worker.
    public let blobsQueued = Gauge("thicket_blob_work_queued", "Pieces of work that wait for a blob worker.")
    /// Parts of uploads received.
    public let blobParts = Counter("thicket_blob_parts_total", "Parts of uploads received and on disk.")
    /// Bytes of parts received.
    public let blobBytesReceived = Counter(
        "thicket_blob_received_bytes_total", "Bytes of parts received, those of refused parts included.")
    /// Bytes of blobs handed to the network loop.
    public let blobBytesSent = Counter("thicket_blob_sent_bytes_total", "Bytes of blobs sent to clients.")
    /// Requests about blobs that were refused, by reason.
    public let blobsRefused = CounterFamily<BlobRefusal>(
        "thicket_blob_refused_total", by: "reason", "Requests about blobs that were refused, by reason.")
    /// Blobs kept.
    public let blobs = Gauge("thicket_blobs", "Blobs kept, at the newest sweep.")
    /// Bytes of blobs kept.
    public let blobBytes = Gauge("thicket_blob_bytes", "Bytes of the blobs kept, at the newest sweep.")
    /// Open uploads.
    public let blobUploads = Gauge("thicket_blob_uploads", "Open uploads, at the newest sweep.")
    /// Files and uploads that sweeps have removed.
    public let blobsCollected = CounterFamily<BlobRemains>(
        "thicket_blob_collected_total", by: "kind", "What sweeps of blobs have removed, by kind.")

    // MARK: Store

    /// Commit groups committed.
    public let commits = Counter("thicket_store_commits_total", "Commit groups committed.")
    /// Commit groups that the loop committed itself.
    public let commitsInline = Counter(
        "thicket_store_commits_inline_total",
        "Commit groups that the network loop committed itself, without waking the shard's thread.")
    /// Commit groups that failed.
    public let commitFailures = Counter(
        "thicket_store_commit_failures_total", "Commit groups that failed; their changes were answered 503.")
    /// Time of a commit, fsync included.
    public let commitSeconds: Histogram = .seconds(
        "thicket_store_commit_seconds", "Time to commit one commit group, fsync included.")
    /// Changes in a commit group.
    public let commitGroupChanges: Histogram = .counts(
        "thicket_store_commit_group_changes", "Changes in one commit group.")
    /// Time of one piece of maintenance on the thread that decides changes.
    public let maintenanceSeconds: Histogram = .seconds(
        "thicket_store_maintenance_seconds", "Time of one piece of maintenance on the thread that decides changes.")
    /// Size of the database file.
    public let storeBytes = Gauge("thicket_store_bytes", "Size of the database file.")
    /// Write-behind heads in memory.
    public let storeWriteBehindHeads = Gauge(
        "thicket_store_late_heads",
        "Write-behind heads in memory: they are in the log and not yet, or only just, in their table.")
    /// Size of the write-ahead log.
    public let storeWALBytes = Gauge("thicket_store_wal_bytes", "Size of the write-ahead log.")
    /// Full bodies written beside a diff.
    public let keyframes = Counter("thicket_store_keyframes_total", "Full bodies written beside a diff.")
    /// Time of one request on a reader.
    public let readSeconds: Histogram = .seconds(
        "thicket_store_read_seconds", "Time of one request on a reader.")
    /// Requests that wait for a reader.
    public let readsQueued = Gauge("thicket_store_reads_queued", "Requests waiting for a reader.")
    /// Log rows removed by retention.
    public let versionsCut = Counter(
        "thicket_store_retention_rows_total", "Log rows removed by retention.")

    /// Completed checks of the database.
    public let storeChecks = Counter(
        "thicket_store_checks_total", "Completed checks of the database file.")
    /// Findings of the newest check; 0 in a sound database.
    public let storeFindings = Gauge(
        "thicket_store_check_findings", "Findings of the newest check of the database file; 0 in a sound one.")

    // MARK: Process

    /// Log lines lost to a slow reader of standard error.
    public let logLinesDropped = Counter(
        "thicket_log_lines_dropped_total", "Log lines dropped because the reader of standard error was too slow.")

    /// All instruments, in the order of declaration.
    public var instruments: [any Instrument] {
        net.instruments
            + Mirror(reflecting: self).children.compactMap { (child: Mirror.Child) in child.value as? any Instrument }
    }

    /// The page of `/metrics`: Prometheus text format 0.0.4, `text/plain; version=0.0.4; charset=utf-8`.
    public func render() -> String {
        var text = ""
        text.reserveCapacity(16_384)
        for instrument in instruments {
            text += "# HELP \(instrument.name) \(instrument.help)\n# TYPE \(instrument.name) \(instrument.kind)\n"
            instrument.renderSamples(to: &text)
        }
        text +=
            "# HELP thicket_build_info The running version, in a label; always 1.\n# TYPE thicket_build_info gauge\n"
        text += "thicket_build_info{version=\"\(ThicketServer.version)\"} 1\n"
        ProcessMetrics.render(to: &text)
        return text
    }

    /// Media type of the page.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"
}
