import ThicketProtocol

/// Tokens that expire during a session, for sessions that renew them (`SyncOptions.renewsToken`).
///
/// A channel whose token has expired keeps its place at the server for a minute; an `init` without a command gives it a
/// new token, and delivery continues (docs/PROTOCOL.md, "When a token ends"). Edits are accepted meanwhile and wait.
extension SyncMachine {
    /// The server's message for a token that is valid except for its expiry.
    static let expired = "Token expired"

    /// Uses another token from now on: immediately on channels whose token has expired, and on the others when theirs
    /// expires.
    ///
    /// Connects when the client is offline because the last token was refused.
    package mutating func adopt(token: String, number: Int, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            machine.options.token = token
            machine.options.tokenNumber = number
            switch machine.link {
            case .parked(.unauthorized), .parked(.wrongAccount):
                machine.backoff.reset()
                machine.adoptLink(.waiting(until: machine.now, .unreachable("the token changed")))
            case .parked, .waiting, .connecting: break
            case .open:
                for number in machine.channels.indices where machine.channels[number].phase == .lapsed {
                    try machine.renew(number)
                }
            }
        }
    }

    /// No other token is available: ends the connection until `adopt`. Edits wait in the store.
    package mutating func signOut(_ reason: String, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in machine.park(.unauthorized(reason)) }
    }

    /// The server does not accept the channel's token, or no longer does.
    ///
    /// - Parameter isExpired: the token is only expired, so that an open channel keeps its place.
    mutating func tokenRefused(_ number: Int, isExpired: Bool) {
        let place: Channel.Lapse.Place?
        switch channels[number].phase {
        case .closed, .refused, .lapsed: return
        case .opening: place = nil
        case .renewing: place = channels[number].lapse?.place
        case .walking: place = isExpired ? .walking : nil
        case .catchingUp, .live: place = isExpired ? .following : nil
        }
        let start = channels[number].lapse?.at ?? now
        channels[number].lapse = Channel.Lapse(at: start, place: place)
        channels[number].phase = .lapsed
        channels[number].answerDue = nil
        channels[number].resumeAt = nil
        channels[number].askedAhead = nil
        channels[number].strays.formUnion(channels[number].inFlight.keys)
        for key in channels[number].reloads.keys.sorted() { channels[number].reloadQueue.append(key) }
        channels[number].reloads.removeAll()
        if channels[number].tokenNumber < options.tokenNumber {
            // A newer token is already available.
            renewOrHangUp(number)
        } else if endedToken != options.tokenNumber {
            endedToken = options.tokenNumber
            actions.append(.tokenEnded(options.tokenNumber))
        }
    }

    mutating func tokenWorked(_ number: Int) {
        guard options.renewsToken, provenToken != number else { return }
        provenToken = number
        actions.append(.tokenGood(number))
    }

    private mutating func renewOrHangUp(_ number: Int) {
        do throws(ClientError) { try renew(number) } catch { hangUp("the bucket could not be opened again") }
    }

    /// Sends the newest token for a channel whose token has expired.
    private mutating func renew(_ number: Int) throws(ClientError) {
        guard let lapse = channels[number].lapse, lapse.place != nil,
            now - lapse.at < SyncLimits.graceMilliseconds
        else { return try openChannel(number) }
        channels[number].phase = .renewing
        channels[number].tokenNumber = options.tokenNumber
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        let record = channels[number].record
        send(Messages.initialize(number, record.name, clientID, options, command: nil, isSealed: record.isSealed))
    }

    /// The new token was accepted: continues what the expiry interrupted.
    ///
    /// Asking from the client's own position separates what was lost from what will still arrive: when that is
    /// answered, everything before it has been received, whether or not the server had kept the channel's place.
    mutating func goOn(_ number: Int) {
        let place = channels[number].lapse?.place ?? .following
        channels[number].lapse = nil
        channels[number].isReadOnly = false
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        guard place == .following || channels[number].record.walk == nil else {
            channels[number].phase = .walking
            return requestPage(number)
        }
        channels[number].phase = .catchingUp
        channels[number].catchUp = CatchUp()
        send(Messages.onChannel(number, "cv:" + (channels[number].record.changeVersion?.text ?? "")))
    }

    /// Everything the server has was received: changes that it still has not answered are sent again unchanged.
    mutating func sendStrays(_ number: Int) {
        let strays = channels[number].strays
        channels[number].strays = []
        for key in strays.sorted() where channels[number].inFlight[key] != nil {
            clearInFlight(number, key)
            channels[number].resend.append(key)
        }
    }
}
