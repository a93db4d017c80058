/// The faults of machines and connections while the world is not calm.
struct Weather {
    private unowned let world: World
    init(_ world: World) { self.world = world }

    func begin() {
        world.after(world.scenario.weatherStep) { [self] in
            guard !world.isCalm else { return }
            blow()
            begin()
        }
    }

    private func blow() {
        if world.befalls(.serverKill) { world.server.crash() }
        if world.isStruck(by: .serverRestore) { world.server.restore() }
        if world.befalls(20) { world.server.ask() }
        for peer in world.peers {
            if world.befalls(.cut) { peer.link?.cut() }
            if world.befalls(.slowReader) { peer.link?.stopReading(for: world.random.between(5, 60) * 1_000_000) }
            if world.befalls(.partition) {
                peer.unreachableUntil = world.now + world.random.between(1, 50) * 1_000_000
                world.record("partition", peer.number)
            }
        }
    }
}
