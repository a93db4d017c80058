import ThicketProtocol

// Channels that ask for nothing after their `init`: being connected is enough to receive changes (docs/PROTOCOL.md,
// cv).
extension Hub {
    /// Nanoseconds that a client has for its first `i` or `cv`.
    static let silenceNanoseconds: Int64 = 1_000_000_000

    /// A channel that has asked for nothing yet. `generation` distinguishes it from the same channel with another
    /// token.
    struct SilentChannel {
        let channel: Channel
        let generation: UInt64
        let deadline: Int64
    }

    /// Records the bucket's position when a channel is admitted, before its first command, so that no later change
    /// is missed.
    func beginSilence(of channel: Channel) {
        guard channel.session.exchange == nil else { return }
        channel.quietPosition = channel.feed?.published
    }

    /// Starts the time limit of a channel that has not asked yet; one that was answered `cv:?` has no position in
    /// the log.
    func watchSilence(of channel: Channel, now: HubInstant) {
        guard case .idle = channel.stream, channel.quietPosition != nil else { return }
        silent.append(
            SilentChannel(
                channel: channel, generation: channel.readGeneration, deadline: now.monotonic + Self.silenceNanoseconds)
        )
    }

    /// Makes a channel live that has asked for nothing: its time is over, or it sends a change.
    func endSilence(of channel: Channel, now: HubInstant) {
        guard let position = channel.quietPosition else { return }
        channel.quietPosition = nil
        guard case .idle = channel.stream else { return }
        catchUp(channel, from: position, mustAnswer: false, now: now)
    }

    /// The list is in order of deadlines, because all channels have the same time.
    func releaseSilent(_ now: HubInstant) {
        let due = silent.prefix { $0.deadline <= now.monotonic }
        guard !due.isEmpty else { return }
        silent.removeFirst(due.count)
        for entry in due where entry.channel.isReady && entry.channel.readGeneration == entry.generation {
            endSilence(of: entry.channel, now: now)
        }
    }
}
