import ThicketProtocol

// Sealed buckets as the loop sees them (decision 0045): the first `init` that wants one waits until it is one on disk.
extension Hub {
    /// Whether the channel, whose `init` wants a sealed bucket, has to wait until this new one is.
    func awaitsSeal(_ channel: Channel, of feed: BucketFeed) -> Bool {
        guard channel.wantedMode == .sealed, channel.canWrite, feed.mode == .open, feed.row == nil,
            !BucketOptions.isBucket(feed.bucket.name)
        else { return false }
        channel.phase = .opening
        feed.sealing.append(channel)
        // One request answers all who wait.
        guard feed.sealing.count == 1 else { return true }
        actions.append(.submit(.seal(SealRequest(bucket: feed.bucket, lane: channel.tenant?.number ?? 0))))
        return true
    }

    /// Who may only read wants a sealed bucket that nobody has written to: what it is, the first who may write decides.
    /// To say `open` would be an alarm about nothing.
    func isUndecided(for channel: Channel, on feed: BucketFeed) -> Bool {
        channel.wantedMode == .sealed && !channel.canWrite && feed.mode == .open && feed.row == nil
    }

    /// Whether a channel that could only read, and left it to others to seal its new bucket, may do so with its next
    /// token.
    func decidesMode(_ channel: Channel, _ request: InitRequest, _ admission: Admission) -> Bool {
        guard admission.canWrite, request.mode.flatMap({ BucketMode(word: $0) }) == .sealed else { return false }
        return channel.feed.map { isUndecided(for: channel, on: $0) } ?? false
    }

    /// Tells the bucket's options, behind an `auth`: the mode of an open one only on request, and its identity only to
    /// clients of our library.
    func sayOptions(of feed: BucketFeed, to channel: Channel, isAsked: Bool) {
        let tellsMode = (isAsked && !isUndecided(for: channel, on: feed)) || feed.mode != .open
        let store = identity(of: feed, for: channel)
        guard tellsMode || store != nil else { return }
        send(Reply.options(channel.number, mode: tellsMode ? feed.mode : nil, store: store), to: channel.session)
    }

    /// nil for other libraries, and while the bucket has no change: an identity is that of a row.
    private func identity(of feed: BucketFeed, for channel: Channel) -> String? {
        guard channel.library == .thicket, channel.session.exchange == nil else { return nil }
        return feed.identity(codec)
    }

    /// The bucket has got its row: channels that were told no identity hear it now.
    func sayIdentity(of feed: BucketFeed) {
        for channel in feed.subscribers where channel.isReady && !channel.session.isClosing {
            guard let store = identity(of: feed, for: channel) else { continue }
            send(Reply.options(channel.number, mode: nil, store: store), to: channel.session)
        }
    }

    /// The shard has said what the bucket is.
    func settleMode(_ answer: BucketModeAnswer, of feed: BucketFeed, now: HubInstant) {
        let waiting = feed.sealing
        switch answer {
        case .unknown:
            for channel in waiting { refuse(channel, .unreadable, now: now) }
        case .mode(let mode):
            tell(mode, to: feed)
            for channel in waiting {
                // What an earlier one asked for may have cost their connection its life.
                guard case .opening = channel.phase, channel.feed === feed, !channel.session.isClosing else { continue }
                welcome(channel, to: feed, now: now)
            }
        }
        feed.sealing = []
        discard(feed)
    }

    /// An operator has changed the mode of all buckets of a name, and it stands on disk.
    func changeMode(_ app: AppID, _ name: BucketName, _ mode: BucketMode) {
        for (bucket, feed) in feeds where bucket.app == app && bucket.name == name {
            // What the shard knows of it is of before.
            actions.append(.submit(.forget(bucket)))
            if feed.isOpen { tell(mode, to: feed) }
        }
    }

    /// The bucket has another mode than the channels on it were told.
    private func tell(_ mode: BucketMode, to feed: BucketFeed) {
        guard feed.mode != mode else { return }
        feed.mode = mode
        for channel in feed.subscribers where channel.isReady && channel.session.exchange == nil {
            send(Reply.options(channel.number, mode: mode, store: nil), to: channel.session)
        }
    }
}
