import ThicketProtocol

// Modes in the loop (decisions 0045 and 0093): the first `init` that wants a sealed bucket or a tree waits until that
// is on disk.
extension Hub {
    /// Whether the channel, whose `init` chooses the mode of this new bucket, must wait until the bucket has it.
    func awaitsMode(_ channel: Channel, of feed: BucketFeed) -> Bool {
        guard let mode = channel.wantedMode, mode.mayBeChosen(for: feed.bucket.name), channel.canWrite,
            feed.mode == .open, feed.row == nil
        else { return false }
        channel.phase = .opening
        feed.choosing.append(channel)
        // One request answers all waiting channels.
        guard feed.choosing.count == 1 else { return true }
        actions.append(.submit(.chooseMode(ModeRequest(mode, of: feed.bucket, tenant: channel.tenant?.id ?? 0))))
        return true
    }

    /// Whether a read-only channel wants a mode for a bucket that has no change yet. The mode is decided by the first
    /// channel that may write; reporting `open` would raise a false alarm.
    func isUndecided(for channel: Channel, on feed: BucketFeed) -> Bool {
        guard let mode = channel.wantedMode, mode.mayBeChosen(for: feed.bucket.name) else { return false }
        return !channel.canWrite && feed.mode == .open && feed.row == nil
    }

    /// Whether a channel that was read-only, and could not choose its new bucket's mode, may do so with its next token.
    func decidesMode(_ channel: Channel, _ request: InitRequest, _ admission: Admission) -> Bool {
        guard admission.canWrite, let mode = request.mode.flatMap({ BucketMode(word: $0) }), mode == channel.wantedMode
        else { return false }
        return channel.feed.map { isUndecided(for: channel, on: $0) } ?? false
    }

    /// Sends the bucket's options after an `auth`: the mode of an open bucket only on request, and its identity
    /// only to Thicket's client library.
    func sayOptions(of feed: BucketFeed, to channel: Channel, isAsked: Bool) {
        let sendsMode = (isAsked && !isUndecided(for: channel, on: feed)) || feed.mode != .open
        let store = identity(of: feed, for: channel)
        guard sendsMode || store != nil else { return }
        send(Reply.options(channel.number, mode: sendsMode ? feed.mode : nil, store: store), to: channel.session)
    }

    /// nil for other libraries, and while the bucket has no change, because an identity needs a row.
    private func identity(of feed: BucketFeed, for channel: Channel) -> String? {
        guard channel.library == .thicket, channel.session.exchange == nil else { return nil }
        return feed.identity(codec)
    }

    /// The bucket has got its row: channels that were sent no identity get it now.
    func sayIdentity(of feed: BucketFeed) {
        for channel in feed.subscribers where channel.isReady && !channel.session.isClosing {
            guard let store = identity(of: feed, for: channel) else { continue }
            send(Reply.options(channel.number, mode: nil, store: store), to: channel.session)
        }
    }

    /// The shard has reported the bucket's mode.
    func receiveMode(_ answer: BucketModeAnswer, of feed: BucketFeed, now: HubInstant) {
        let waiting = feed.choosing
        switch answer {
        case .unknown:
            for channel in waiting { refuse(channel, .unreadable, now: now) }
        case .mode(let mode):
            notify(mode, to: feed)
            for channel in waiting {
                // A command kept by an earlier channel may have closed their connection.
                guard case .opening = channel.phase, channel.feed === feed, !channel.session.isClosing else { continue }
                welcome(channel, to: feed, now: now)
            }
        }
        feed.choosing = []
        discard(feed)
    }

    /// An operator has changed the mode of all buckets of a name, and the change is on disk.
    func changeMode(_ app: AppID, _ name: BucketName, _ mode: BucketMode) {
        for (bucket, feed) in feeds where bucket.app == app && bucket.name == name {
            // The shard's copy has the old mode.
            actions.append(.submit(.forget(bucket)))
            if feed.isOpen { notify(mode, to: feed) }
        }
    }

    /// Sets a mode that differs from the one the channels were sent, and notifies them.
    private func notify(_ mode: BucketMode, to feed: BucketFeed) {
        guard feed.mode != mode else { return }
        feed.mode = mode
        for channel in feed.subscribers where channel.isReady && channel.session.exchange == nil {
            send(Reply.options(channel.number, mode: mode, store: nil), to: channel.session)
        }
    }
}
