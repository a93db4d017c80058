import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// A request by HTTP on its way through the simulated network.
final class TreeCall {
    let device: TreeDevice
    let bytes: [UInt8]
    /// The batch that it carries; nil for other requests.
    let batch: BatchID?
    /// The last part of a doubled request, whose answer does not arrive.
    private let isCopy: Bool
    private var done: ((HTTPResponse?) -> Void)?
    private var world: World { device.world }

    /// Microseconds after which a client gives up.
    private static let patience: Int64 = 120_000_000

    /// - Parameter done: called once, with nil when no answer arrives.
    init(
        _ device: TreeDevice, _ bytes: [UInt8], batch: BatchID?, isCopy: Bool = false,
        done: @escaping (HTTPResponse?) -> Void
    ) {
        (self.device, self.bytes, self.batch, self.isCopy, self.done) = (device, bytes, batch, isCopy, done)
    }

    private func delay() -> Int64 {
        let travel = world.random.delay(200, world.scenario.latency)
        let wall = max(0, device.unreachableUntil - world.now)
        return wall > 0 ? wall + travel : travel
    }

    func send() {
        world.lastWork = world.now
        world.after(Self.patience) { [self] in finish(nil) }
        if !isCopy, world.befalls(.doubledCall) {
            let copy = TreeCall(device, bytes, batch: batch, isCopy: true) { _ in }
            world.after(world.random.delay(0, 3_000_000)) { copy.send() }
        }
        // The request is lost, or its answer, and the client notices that the connection has ended.
        let isLost = world.befalls(.lostCall)
        if isLost, world.random.chance(500) { return world.after(delay() + delay()) { [self] in finish(nil) } }
        world.after(delay()) { [self] in
            if isLost {
                let answered = done
                done = nil
                world.after(world.random.delay(1_000, 5_000_000)) { answered?(nil) }
            }
            guard world.server.request(self) else { return failed() }
        }
    }

    /// The server has answered.
    func answered(_ response: HTTPResponse) { world.after(delay()) { [self] in finish(response) } }

    /// The server is down, or has died with the request.
    func failed() { world.after(delay()) { [self] in finish(nil) } }

    private func finish(_ response: HTTPResponse?) {
        let done = done
        self.done = nil
        done?(response)
    }
}
