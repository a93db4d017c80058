import ThicketAuth
import ThicketNet
import ThicketProtocol

// Requests about accounts and of partners' apps, on the loop's thread: only paths and methods are checked here,
// everything else on the threads that own the directories.
extension ServerLoop {
    /// Handles a request about a built-in account.
    func answer(
        _ route: AccountRoute, _ request: HTTPRequest, on connection: ConnectionID
    ) -> HTTPDisposition {
        guard let accounts else { return .respond(pages.answer(.unknown, request)) }
        hub.metrics.httpRequests.add(1, .account)
        let methods = route.methods
        if let early = early(request, methods, isAccepted: route.accepts(request.method)) {
            return .respond(early)
        }
        let asked = ServerAccounts.Asked(
            connection: connection, route: route, request: request, address: address(of: connection),
            fields: pages.cors.fields(for: request))
        guard accounts.push(asked) else {
            hub.metrics.limitHits.add(1, .accountQueue)
            return .respond(pages.cors.marking(AccountAnswer.unavailable(route), to: request))
        }
        return .later
    }

    /// Handles a request of a partner's app.
    func answer(
        _ route: PartnerService.Route, _ request: HTTPRequest, on connection: ConnectionID
    ) -> HTTPDisposition {
        guard let access else { return .respond(pages.answer(.unknown, request)) }
        hub.metrics.httpRequests.add(1, .partner)
        let methods = PartnerService.methods(of: route)
        if let early = early(request, methods, isAccepted: PartnerService.accepts(request.method, route)) {
            return .respond(early)
        }
        let asked = ServerAccess.Asked(
            connection: connection, route: route, request: request, address: address(of: connection),
            fields: pages.cors.fields(for: request))
        guard access.push(asked) else {
            hub.metrics.limitHits.add(1, .accessQueue)
            return .respond(pages.cors.marking(PartnerAnswer.unavailable, to: request))
        }
        return .later
    }

    /// Handles a request about keys.
    func answer(_ route: KeyLogRoute, _ request: HTTPRequest, on connection: ConnectionID) -> HTTPDisposition {
        guard let keyLog else { return .respond(pages.answer(.unknown, request)) }
        hub.metrics.httpRequests.add(1, .keyLog)
        let isAccepted = request.method.utf8.elementsEqual(route.methods.utf8)
        if let early = early(request, route.methods, isAccepted: isAccepted) { return .respond(early) }
        let asked = ServerKeyLog.Asked(
            connection: connection, route: route, request: request, address: address(of: connection),
            fields: pages.cors.fields(for: request))
        guard keyLog.push(asked) else {
            hub.metrics.limitHits.add(1, .keyLog)
            return .respond(pages.cors.marking(KeyLogAnswer.unavailable, to: request))
        }
        return .later
    }

    /// The answer that follows from the method alone; nil when the path accepts the method.
    private func early(_ request: HTTPRequest, _ methods: String, isAccepted: Bool) -> HTTPResponse? {
        if request.method.utf8.elementsEqual("OPTIONS".utf8) {
            return pages.cors.preflight(request, allowed: methods + ", OPTIONS")
        }
        return isAccepted
            ? nil : pages.cors.marking(ServerPages.methodNotAllowed(but: methods + ", OPTIONS"), to: request)
    }
}
