import ThicketProtocol

/// Tokens that end while a session lives: only where somebody renews them (`SyncOptions.renewsToken`).
///
/// A channel whose token has ended keeps its place at the server for a minute; an `init` without a command gives it
/// another token, and delivery goes on (docs/PROTOCOL.md, "When a token ends"). Edits are taken meanwhile and wait.
extension SyncMachine {
    /// What the server says of a token with which nothing is wrong but its time.
    static let expired = "Token expired"

    /// Uses another token from now on: for channels whose token has ended at once, for the others when theirs ends.
    ///
    /// Connects when there is no connection because the last token was refused.
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

    /// Nobody has another token: ends the connection until `adopt`. Edits wait in the store.
    package mutating func signOut(_ reason: String, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in machine.park(.unauthorized(reason)) }
    }

    /// The server does not take the channel's token, or no longer.
    ///
    /// - Parameter isExpired: nothing else is wrong with it, so that an open channel keeps its place.
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
            // Another one is here already.
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

    /// Sends the newest token for a channel whose own has ended.
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

    /// The new token was taken: on with what the end of the last one interrupted.
    ///
    /// Asking from our own position fences off what was lost from what is still to come: when that is answered,
    /// everything before it is here, whether or not the server had kept the channel's place.
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

    /// Everything the server has is here: changes that it still did not answer go again, as they were.
    mutating func sendStrays(_ number: Int) {
        let strays = channels[number].strays
        channels[number].strays = []
        for key in strays.sorted() where channels[number].inFlight[key] != nil {
            landed(number, key)
            channels[number].resend.append(key)
        }
    }
}
