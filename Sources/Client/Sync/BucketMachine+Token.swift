import ThicketProtocol

/// Tokens that expire during a session, for sessions that renew them (`SyncOptions.renewsToken`).
///
/// A channel whose token has expired keeps its place at the server for a minute; an `init` without a command gives it a
/// new token, and delivery continues (docs/PROTOCOL.md, "When a token ends"). Edits are accepted meanwhile and wait.
extension BucketMachine {
    /// The server's message for a token that is valid except for its expiry.
    static let expired = "Token expired"

    /// The server does not accept the channel's token, or no longer does.
    ///
    /// - Parameter isExpired: the token is only expired, so that an open channel keeps its place.
    mutating func tokenRefused(isExpired: Bool, _ turn: inout SyncTurn) {
        let place: Token.Lapse.Place?
        switch phase {
        case .closed, .refused, .lapsed: return
        case .opening: place = nil
        case .renewing: place = token.lapse?.place
        case .scanning: place = isExpired ? .scanning : nil
        case .catchingUp, .live: place = isExpired ? .following : nil
        }
        let start = token.lapse?.at ?? turn.now
        token.lapse = Token.Lapse(at: start, place: place)
        phase = .lapsed
        answerDue = nil
        resumeAt = nil
        scan.askedAhead = nil
        outbox.lapse()
        reloads.lapse()
        if token.number < turn.link.options.tokenNumber {
            // A newer token is already available.
            renew(&turn)
        } else {
            turn.tokenEnded()
        }
    }

    /// Sends the newest token for a channel whose token has expired.
    mutating func renew(_ turn: inout SyncTurn) {
        guard let lapse = token.lapse, lapse.place != nil,
            turn.now - lapse.at < SyncLimits.graceMilliseconds
        else { return open(&turn) }
        phase = .renewing
        token.number = turn.link.options.tokenNumber
        answerDue = turn.now + SyncLimits.answerMilliseconds
        turn.send(
            Messages.initialize(
                number, record.name, turn.link.clientID, turn.link.options, command: nil,
                mode: record.isSealed ? "sealed" : nil))
    }

    /// The new token was accepted: continues what the expiry interrupted.
    ///
    /// Asking from the client's own position separates what was lost from what will still arrive: when that is
    /// answered, everything before it has been received, whether or not the server had kept the channel's place.
    mutating func goOn(_ turn: inout SyncTurn) {
        let place = token.lapse?.place ?? .following
        token.lapse = nil
        outbox.isReadOnly = false
        answerDue = turn.now + SyncLimits.answerMilliseconds
        guard place == .following || record.indexScan == nil else {
            phase = .scanning
            return requestPage(&turn)
        }
        phase = .catchingUp
        askSince(&turn)
    }
}
