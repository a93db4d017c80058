/// Waits two milliseconds between two looks at something that no event reports. A loop of `Task.yield` would use a
/// whole core until then, and most tests of a run wait at the same time.
public func pauseBetweenLooks() async { try? await Task.sleep(for: .milliseconds(2)) }
