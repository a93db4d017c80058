/// What happens to machines and cables while the world is not calm.
struct Weather {
    private unowned let world: World
    /// Microseconds between two throws of the dice.
    private static let step: Int64 = 1_000_000

    init(_ world: World) { self.world = world }

    func begin() {
        world.after(Self.step) { [self] in
            guard !world.isCalm else { return }
            blow()
            begin()
        }
    }

    private func blow() {
        let scenario: Scenario = world.scenario
        if world.befalls(scenario.serverCrashes) { world.server.crash() }
        if world.befalls(20) { world.server.ask() }
        for peer: Peer in world.peers {
            if world.befalls(scenario.cuts) { peer.link?.cut() }
            if world.befalls(scenario.partitions) {
                peer.unreachableUntil = world.now + world.random.between(1, 50) * 1_000_000
                world.note("partition", peer.number)
            }
        }
    }
}
