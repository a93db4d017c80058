import ThicketAuth
import ThicketProtocol

// Ends of tokens: what happens to the channels, and how another token replaces an ended one (docs/PROTOCOL.md).
extension Hub {
    /// Milliseconds for which a channel waits for another token; nothing is delivered in that time.
    static let graceMilliseconds: Int64 = 60_000
    /// Milliseconds after which a channel whose new token is still being checked is examined again.
    private static let patienceMilliseconds: Int64 = 1_000

    /// Must begin every event: a token that has ended by now ended before the event.
    func expireDue(_ now: HubInstant) {
        guard !ends.isEmpty else { return }
        if ends.hasJumped(now) { rescheduleEnds(now) }
        while let action = ends.takeDue(now) { action() }
        let channels = ended
        ended = []
        for channel in channels { end(channel, now: now) }
    }

    /// Schedules the end of a channel's token, or of the time it has to show another one.
    /// - Parameter end: milliseconds since 1970.
    func schedule(_ channel: Channel, end: Int64, now: HubInstant) {
        if let old = channel.end { ends.cancel(old.ticket) }
        schedule(channel, end, latest: .max, now: now)
    }

    private func schedule(_ channel: Channel, _ end: Int64, latest: Int64, now: HubInstant) {
        let ticket = ends.schedule(at: end, latest: latest, now: now) { [unowned self] in
            ended.append(channel)
        }
        channel.end = Channel.End(time: end, ticket: ticket)
    }

    private func rescheduleEnds(_ now: HubInstant) {
        for session in sessions {
            for channel in session.channels {
                guard let old = channel.end else { continue }
                ends.cancel(old.ticket)
                schedule(channel, old.time, latest: old.ticket.deadline, now: now)
            }
        }
    }

    private func end(_ channel: Channel, now: HubInstant) {
        channel.end = nil
        switch channel.phase {
        case .authenticating, .gone: break
        case .opening:
            let queued = channel.takeQueued().count
            remove(channel)
            sendRefusal(channel, .tokenExpired)
            for _ in 0..<queued { send(Reply.notUnderstood(channel.number), to: channel.session) }
        case .ready: lapse(channel, now: now)
        case .lapsed:
            guard channel.renewal == nil else {
                return schedule(channel, end: now.unix + Self.patienceMilliseconds, now: now)
            }
            dismiss(channel, "the token has expired")
        }
    }

    /// The token has ended: the channel keeps its number and subscription, and nothing is delivered or accepted.
    private func lapse(_ channel: Channel, now: HubInstant) {
        channel.stream = .suspended(channel.continuation)
        channel.phase = .lapsed
        // Answers that readers are about to give are dropped.
        nextGeneration += 1
        channel.readGeneration = nextGeneration
        metrics.channels.subtract()
        sendRefusal(channel, .tokenExpired)
        schedule(channel, end: now.unix + Self.graceMilliseconds, now: now)
    }

    // MARK: Another token

    /// Whether this `init` only gives a waiting channel another token: same app and bucket, and no command. Whether
    /// the user is the same is known later. The client may use another client id.
    func isRenewal(_ request: InitRequest, of channel: Channel) -> Bool {
        guard case .lapsed = channel.phase, request.command?.isEmpty ?? true,
            let app = try? AppID(request.appID ?? ""), app == channel.session.app,
            let target = try? Self.target(request.name), target.bucket == channel.bucketName,
            target.branch == channel.branch,
            (try? ClientID(request.clientID ?? "")) != nil
        else { return false }
        return true
    }

    /// Starts the check of a channel's new token.
    func renew(_ channel: Channel, with request: InitRequest) {
        guard let token = Self.acceptable(request.token) else {
            return refuse(channel.number, of: channel.session, .malformed, expectsExpired: channel.expectsExpired)
        }
        channel.renewal = request
        nextGeneration += 1
        channel.readGeneration = nextGeneration
        read(.grant(token: token), for: channel)
    }

    /// The new token of a channel is good: delivery continues where it stopped.
    func renewed(_ channel: Channel, _ admission: Admission, now: HubInstant) {
        guard let request = channel.renewal else { return }
        channel.renewal = nil
        if let clientID = try? ClientID(request.clientID ?? "") { channel.clientID = clientID }
        guard admission.user == channel.user, !decidesMode(channel, request, admission) else {
            return restart(channel, as: request, admission, now: now)
        }
        channel.canWrite = admission.canWrite
        channel.phase = .ready
        forget(channel)
        remember(channel, admission, now: now)
        metrics.channels.add()
        metrics.authorizations.add(1, .authorized)
        channel.name = admission.name
        send(Reply.authorized(channel.number, admission.name), to: channel.session)
        // The mode may have changed while nothing was delivered.
        if let feed = channel.feed { sayOptions(of: feed, to: channel, isAsked: request.mode != nil) }
        resume(channel, now: now)
        runQueued(channel, now: now)
    }

    /// The new token of a channel is not good; the client may show another one while the channel waits.
    func refuseRenewal(of channel: Channel, _ refusal: InitRefusal) {
        channel.renewal = nil
        let queued = channel.takeQueued().count
        refuse(channel.number, of: channel.session, refusal, expectsExpired: channel.expectsExpired)
        for _ in 0..<queued { send(Reply.notUnderstood(channel.number), to: channel.session) }
    }

    /// The new token belongs to another user, or grants what the previous one did not: the channel starts from the
    /// beginning, with the commands kept so far.
    private func restart(_ channel: Channel, as request: InitRequest, _ admission: Admission, now: HubInstant) {
        nextGeneration += 1
        let fresh = Channel(
            session: channel.session, number: channel.number, generation: nextGeneration, clientID: channel.clientID,
            bucketName: channel.bucketName, branch: channel.branch, request: request)
        for (request, bytes) in channel.takeQueued() { _ = fresh.keep(request, bytes: bytes) }
        remove(channel)
        fresh.session.channels.append(fresh)
        enter(fresh, admission, now: now)
    }

    private func resume(_ channel: Channel, now: HubInstant) {
        guard case .suspended(let continuation) = channel.stream else { return }
        switch continuation {
        case .idle:
            channel.stream = .idle
            sendHeld(channel)
            watchSilence(of: channel, now: now)
        case .scanning(let current): continueScan(channel, at: current, now: now)
        case .following(let gid, let mustAnswer):
            channel.stream = .idle
            catchUp(channel, from: gid, mustAnswer: mustAnswer, now: now)
        }
    }

    // MARK: Channels open by partners' tokens

    /// Records the partner's pass of a channel and when its token ends.
    func remember(_ channel: Channel, _ admission: Admission, now: HubInstant) {
        channel.pass = admission.pass
        if admission.pass != nil { partnerChannels[admission.user, default: [:]][channel.generation] = channel }
        if let end = admission.ends { schedule(channel, end: end, now: now) }
    }

    /// Undoes `remember`.
    func forget(_ channel: Channel) {
        if let old = channel.end { ends.cancel(old.ticket) }
        channel.end = nil
        guard channel.pass != nil, let user = channel.user else { return }
        channel.pass = nil
        partnerChannels[user]?[channel.generation] = nil
        if partnerChannels[user]?.isEmpty ?? false { partnerChannels[user] = nil }
    }

    /// Ends the channels of revoked tokens, and connections that have no other channel.
    /// - Returns: the tokens by which they were open.
    public func revoke(_ revocation: Revocation, now: HubInstant) -> [DeniedToken] {
        defer { emptyLeaving() }
        var found = [Channel]()
        switch revocation {
        case .partner(let partner):
            for channels in partnerChannels.values {
                found += channels.values.filter { $0.pass?.partner.utf8.elementsEqual(partner.utf8) ?? false }
            }
        case .device(let device, let entity):
            found = partnerChannels(of: entity).filter { $0.pass?.device.utf8.elementsEqual(device.utf8) ?? false }
        case .user(let entity, let device):
            found = partnerChannels(of: entity).filter {
                !($0.pass?.device.utf8.elementsEqual((device ?? "").utf8) ?? false)
            }
        }
        // By age, because the order of a dictionary is undefined.
        found.sort { $0.generation < $1.generation }
        let tokens = found.compactMap { $0.pass?.denied }
        for channel in found {
            sendRefusal(channel, .signedOut)
            dismiss(channel, "signed out")
        }
        return tokens
    }

    private func partnerChannels(of entity: String) -> [Channel] {
        guard let user = try? UserID(entity) else { return [] }
        return (partnerChannels[user] ?? [:]).values.map { $0 }
    }

    /// Removes a channel, and closes the connection with its last one.
    private func dismiss(_ channel: Channel, _ reason: String) {
        let session = channel.session
        remove(channel)
        if session.channels.isEmpty { close(session, .policyViolation, reason) }
    }

    private func sendRefusal(_ channel: Channel, _ refusal: InitRefusal) {
        metrics.authorizations.add(1, .ended)
        sendRefusal(channel.number, of: channel.session, refusal, expectsExpired: channel.expectsExpired)
    }

    // MARK: Tokens of partners

    /// Asks for the check of a token that the store does not have, in case a partner has signed it.
    /// - Returns: false when it does not have that form.
    func askPartner(about token: String, of channel: Channel) -> Bool {
        let session = channel.session
        guard knowsPartners, let app = session.app, SignedToken.hasForm(token) else { return false }
        guard session.admissions < limits.channelsPerConnectionMax * 2 else {
            metrics.limitHits.add(1, .accessQueue)
            close(session, .tryAgainLater, "too many tokens await their answer")
            return true
        }
        session.admissions += 1
        let device = channel.renewal == nil ? channel.deviceID : channel.renewal?.deviceID
        actions.append(
            .admit(AdmissionRequest(origin: channel.origin, app: app, token: token, device: device)))
        return true
    }

    /// A partner's token was checked. Answers to channels that are gone are dropped.
    public func admitted(_ request: AdmissionRequest, _ answer: AdmissionAnswer, now: HubInstant) {
        defer { emptyLeaving() }
        expireDue(now)
        guard let session = session(request.origin.connection) else { return }
        session.admissions -= 1
        guard !session.isClosing, let channel = session.channel(request.origin.channel),
            channel.readGeneration == request.origin.generation
        else { return }
        switch answer {
        case .admitted(let pass):
            guard let user = try? UserID(pass.entity) else { return turnAway(channel, .invalid, now: now) }
            let admission = Admission(pass, user: user)
            // It may have ended while the answer was on its way.
            guard let end = admission.ends, end > now.unix else {
                return turnAway(channel, .tokenExpired, now: now)
            }
            enter(channel, admission, now: now)
        case .refused(.expired): turnAway(channel, .tokenExpired, now: now)
        case .refused(.denied): turnAway(channel, .invalid, now: now)
        case .tooMany(let seconds):
            metrics.limitHits.add(1, .attempts)
            turnAway(channel, .tooManyTokens(seconds: seconds), now: now)
        case .busy:
            metrics.limitHits.add(1, .accessQueue)
            close(session, .tryAgainLater, "too many tokens await their answer")
        case .unavailable: turnAway(channel, .unreadable, now: now)
        }
    }
}

extension InitRefusal {
    static let malformed = InitRefusal(.invalidRequest, "Token malformed")
    static let invalid = InitRefusal(.unauthorized, "Token invalid")
    static let tokenExpired = InitRefusal(.unauthorized, "Token expired")
    static let signedOut = InitRefusal(.unauthorized, "Signed out")
    static let unreadable = InitRefusal(.serverError, "The store cannot be read")

    static let accountEnded = InitRefusal(.serverError, "The account has ended", limit: .ended)

    /// Not 400 or 401, because those would make clients discard the token; the stream has no code of its own for this.
    static func tooManyTokens(seconds: Int) -> InitRefusal {
        InitRefusal(.serverError, "Too many failed tokens, try again later", limit: .attempts(seconds: seconds))
    }
}
